// What survives a reload: the hold's id and secret, and the key of a confirm whose answer has not
// come yet. Per tab, so that two tabs do not pull at one hold; the server's list finds the rest.

/** @typedef {{id: string, secret?: string, confirmKey?: string, confirmFence?: number}} StoredHold
 *  The key of a confirm under way belongs to the fence it was made with. */

/** @param {string} event */
const nameOf = (event) => `soldonce.hold.${event}`;

/** @param {string} event @returns {StoredHold|null} */
export function storedHold(event) {
  try {
    const stored = JSON.parse(sessionStorage.getItem(nameOf(event)) ?? "null");
    return typeof stored?.id === "string" ? stored : null;
  } catch {
    return null;
  }
}

/** @param {string} event @param {StoredHold} hold */
export function storeHold(event, hold) {
  sessionStorage.setItem(nameOf(event), JSON.stringify(hold));
}

/** @param {string} event */
export function forgetHold(event) {
  sessionStorage.removeItem(nameOf(event));
}

const BOOKED = "soldonce.booked";

/** The secret of a hold proves its booking too, should the session be gone. */
export function storedBookingSecret(/** @type {string} */ booking) {
  try {
    return JSON.parse(sessionStorage.getItem(BOOKED) ?? "{}")[booking];
  } catch {
    return undefined;
  }
}

/** @param {string} booking @param {string|undefined} secret */
export function storeBookingSecret(booking, secret) {
  if (!secret) return;
  const known = JSON.parse(sessionStorage.getItem(BOOKED) ?? "{}");
  sessionStorage.setItem(BOOKED, JSON.stringify({ ...known, [booking]: secret }));
}
