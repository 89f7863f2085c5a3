// What survives a reload: the hold's id and secret, the key of a confirm whose answer has not come
// yet, and the payment under way. Per tab, so that two tabs do not pull at one hold; the server's
// list finds the rest.

import { ofTab } from "./storage.js";

/** @typedef {object} StoredHold
 *  @property {string} id
 *  @property {string} [secret]
 *  @property {string} [confirmKey]  Of a confirm under way; belongs to the fence it was made with.
 *  @property {number} [confirmFence]
 *  @property {string} [payKey]  Of the checkout that began the payment under way.
 *  @property {number} [payFence]
 *  @property {string} [charged]  The booking that a card was charged for. */

/** @param {string} event */
const nameOf = (event) => `soldonce.hold.${event}`;

/** @param {string} event @returns {StoredHold|null} */
export function storedHold(event) {
  const stored = ofTab.getJson(nameOf(event));
  return typeof stored?.id === "string" ? stored : null;
}

/** @param {string} event @param {StoredHold} hold */
export function storeHold(event, hold) {
  ofTab.setJson(nameOf(event), hold);
}

/** @param {string} event */
export function forgetHold(event) {
  ofTab.remove(nameOf(event));
}

const BOOKED = "soldonce.booked";

/** The secret of a hold proves its booking too, should the session be gone. */
export function storedBookingSecret(/** @type {string} */ booking) {
  return ofTab.getJson(BOOKED)?.[booking];
}

/** @param {string} booking @param {string|undefined} secret */
export function storeBookingSecret(booking, secret) {
  if (secret) ofTab.setJson(BOOKED, { ...ofTab.getJson(BOOKED), [booking]: secret });
}
