// What is the shopper's own: holds that live, and bookings, those of this session and those whose
// links this browser has seen. Reached from every page.

import { Refused, asAnyone, asShopper, hadSession, listAll } from "./api.js";
import { clock } from "./clock.js";
import { el, setText } from "./dom.js";
import { dateAndTime, money, plural, remaining } from "./format.js";
import { bookingHash, knownBookings } from "./links.js";
import { headline, isOpen } from "./ticket.js";

/** @typedef {import("./wire.js").Booking} Booking */
/** @typedef {import("./wire.js").Hold} Hold */

const TICK_MS = 500;
// So many of the remembered links, and of unlisted events, are read at once; others are shown by their number.
const READ_MAX = 12;

export async function openMine() {
  const [events, holds, bookings] = await Promise.all([
    listAll(asAnyone, "GET /v1/events"),
    hadSession() ? own("GET /v1/holds") : [],
    ownBookings(),
  ]);
  const nameOf = new Map(events.map((event) => [event.id, event]));
  // The list leaves some out: those are read by their id.
  const unlisted = new Set([...holds, ...bookings].map(({ event }) => event).filter((id) => !nameOf.has(id)));
  const read = [...unlisted].slice(0, READ_MAX).map((id) => asAnyone({ route: "GET /v1/events/{event}", id }).catch(() => null));
  for (const event of await Promise.all(read)) if (event) nameOf.set(event.id, event);
  let held = holds.map((hold) => {
    const time = el("strong.time", { "data-part": "mine-time" });
    return { hold, time, line: holdLine(hold, time, nameOf) };
  });
  const title = el("h1", { tabindex: "-1" }, "My bookings");
  const heldNow = el("h2", {}, "Held for you now");
  const nothing = el(
    "p.nothing",
    { "data-part": "nothing-own" },
    "Nothing here yet. A booking made elsewhere opens by its own link.",
  );
  const element = el(
    "main.mine",
    { "data-part": "mine" },
    title,
    heldNow,
    el("ul.own-list", {}, ...held.map(({ line }) => line)),
    bookings.length > 0 && el("h2", {}, "Booked"),
    el("ul.own-list", {}, ...bookings.map((booking) => bookingLine(booking, nameOf))),
    nothing,
  );
  const tick = () => {
    const over = held.filter(({ hold }) => clock.known && clock.until(hold.expires_at) === 0);
    for (const { line } of over) {
      if (line.contains(document.activeElement)) title.focus({ preventScroll: true });
      line.remove();
    }
    held = held.filter((one) => !over.includes(one));
    for (const { hold, time } of held) setText(time, clock.known ? remaining(clock.until(hold.expires_at)) : "");
    heldNow.hidden = held.length === 0;
    nothing.hidden = held.length + bookings.length > 0;
  };
  tick();
  const ticking = setInterval(tick, TICK_MS);
  const cameBack = () => {
    // A laptop that slept: elapsed time may not have been counted. Any answer tells the time.
    if (!document.hidden && held.length > 0) own("GET /v1/holds").catch(() => []);
  };
  document.addEventListener("visibilitychange", cameBack);
  addEventListener("online", cameBack);
  const close = () => {
    clearInterval(ticking);
    document.removeEventListener("visibilitychange", cameBack);
    removeEventListener("online", cameBack);
  };
  return { element, title: "My bookings", close };
}

/** Of this session; a server that is closed to shoppers has none.
 *  @template {"GET /v1/holds"|"GET /v1/bookings"} R @param {R} route */
async function own(route) {
  try {
    return await listAll(asShopper, route);
  } catch (error) {
    if (error instanceof Refused) return [];
    throw error;
  }
}

/** @returns {Promise<Booking[]>} */
async function ownBookings() {
  /** @type {Booking[]} */
  const listed = hadSession() ? await own("GET /v1/bookings") : [];
  const ids = new Set(listed.map(({ id }) => id));
  const others = knownBookings().filter(({ id }) => !ids.has(id)).slice(0, READ_MAX);
  const read = others.map(({ id, secret }) => asShopper({ route: "GET /v1/bookings/{booking}", id, secret }).catch(() => null));
  const found = (await Promise.all(read)).filter((one) => one !== null);
  const at = (/** @type {Booking} */ booking) => Date.parse(booking.created_at ?? "") || 0;
  // A payment that came to nothing left no booking behind.
  const all = [...listed, ...found].filter((one) => isOpen(one) || !["failed", "expired"].includes(one.state));
  return all.sort((a, b) => at(b) - at(a));
}

/** @param {Hold} hold @param {HTMLElement} time @param {Map<string, import("./wire.js").SaleEvent>} nameOf */
function holdLine(hold, time, nameOf) {
  const event = nameOf.get(hold.event);
  const sum = `${plural(hold.units.length, "place")} · ${money(hold.total, hold.currency)}`;
  return line(`#/events/${encodeURIComponent(hold.event)}`, "mine-hold", event?.name ?? hold.event, sum, time);
}

/** @param {Booking} booking @param {Map<string, import("./wire.js").SaleEvent>} nameOf */
function bookingLine(booking, nameOf) {
  const event = nameOf.get(booking.event);
  const when = dateAndTime(event?.starts_at);
  const sold = booking.lines.filter(({ state }) => state === "sold").length;
  const what = sold > 0 ? plural(sold, "place") : "";
  const about = [when, what].filter(Boolean).join(" · ");
  const state = el("span.state", {}, headline(booking, false, event).title);
  return line(bookingHash(booking.id), "mine-booking", event?.name ?? booking.event, about, state);
}

/** @param {string} href @param {string} name @param {string} title @param {string} about @param {HTMLElement} more */
function line(href, name, title, about, more) {
  const text = el("span.what", {}, el("strong", {}, title), el("small", {}, about));
  return el("li", {}, el("a.own-line", { href, "data-part": name }, text, more));
}
