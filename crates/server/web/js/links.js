// Links that lead back to a booking. What opens it stands behind the hash: a browser never sends
// that part, so it reaches no log and no other site. This browser remembers the links it has seen.

import { lasting } from "./storage.js";

const KEPT_AS = "soldonce.bookings";
const KEPT_MAX = 50;

/** @returns {{id: string, secret: string}[]}  The newest first. */
export function knownBookings() {
  const known = lasting.getJson(KEPT_AS);
  return Array.isArray(known) ? known.filter(({ id, secret }) => id && secret) : [];
}

/** @param {string} id @param {string|undefined} secret */
export function rememberBooking(id, secret) {
  if (!secret) return;
  const others = knownBookings().filter((known) => known.id !== id);
  lasting.setJson(KEPT_AS, [{ id, secret }, ...others].slice(0, KEPT_MAX));
}

/** @param {string} id */
export function secretOfBooking(id) {
  return knownBookings().find((known) => known.id === id)?.secret;
}

/** The view of a booking. @param {string} id @param {string} [secret] */
export function bookingHash(id, secret = secretOfBooking(id)) {
  const view = `#/bookings/${encodeURIComponent(id)}`;
  return secret ? `${view}/${encodeURIComponent(secret)}` : view;
}

/** The whole address, to be kept. @param {string} id @param {string} [secret] */
export function bookingLink(id, secret) {
  return new URL(bookingHash(id, secret), location.href).href;
}
