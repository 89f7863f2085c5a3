// A booking as a ticket: what was sold, for how much, and its id.

import { asShopper, paths, request } from "./api.js";
import { announce, el, icon } from "./dom.js";
import { dateAndTime, money, plural } from "./format.js";
import { storedBookingSecret } from "./holdstore.js";
import { Plan } from "./plan.js";

/** @typedef {import("./wire.js").Booking} Booking */
/** @typedef {import("./wire.js").Line} Line */

/** @type {Record<string, string>} */
const STATES = {
  confirmed: "Confirmed",
  pending_payment: "Waiting for payment",
  partly_cancelled: "Partly cancelled",
  cancelled: "Cancelled",
  failed: "Payment failed",
  expired: "Expired",
  needs_refund: "Refund on its way",
  refunded: "Refunded",
};

/** @param {string} id */
export async function openBooking(id) {
  /** @type {Booking} */
  const booking = await asShopper("GET", paths.booking(id), { secret: storedBookingSecret(id) });
  // Names and places make the ticket readable; without them it is still a ticket.
  const [event, chart] = await Promise.all([
    request("GET", paths.event(booking.event)).catch(() => null),
    request("GET", paths.chart(booking.event)).catch(() => null),
  ]);
  const plan = chart && new Plan(chart, event?.prices ?? {});
  announce(
    `${STATES[booking.state] ?? booking.state}. ${plural(booking.lines.length, plan?.unitWord ?? "unit")}.`,
  );
  return { element: ticket(booking, event, plan), title: "Your booking", close: () => {} };
}

/** @param {Booking} booking @param {import("./wire.js").SaleEvent|null} event @param {Plan|null} plan */
function ticket(booking, event, plan) {
  const good = booking.state === "confirmed";
  const map = `#/events/${encodeURIComponent(booking.event)}`;
  const when = dateAndTime(event?.starts_at);
  return el(
    "main.booking-page",
    {},
    el(
      "article.ticket",
      { "data-testid": "booking", "data-booking": booking.id, "data-state": booking.state },
      el(
        "header",
        {},
        el(good ? "span.seal.good" : "span.seal", {}, icon(good ? "check" : "warn")),
        el(
          "h1",
          { tabindex: "-1" },
          good ? "It is yours" : (STATES[booking.state] ?? booking.state),
        ),
        el("p", {}, event?.name ?? booking.event),
        when && el("p.when", {}, when),
      ),
      el("hr", { "aria-hidden": "true" }),
      el(
        "ul.lines",
        {},
        ...grouped(booking, plan).map((line) => lineElement(line, booking.currency)),
      ),
      el(
        "div.sum",
        {},
        el("span", {}, "Total"),
        el(
          "strong.total",
          { "data-testid": "booking-total" },
          money(booking.total, booking.currency),
        ),
      ),
      facts(booking),
    ),
    el("a.button.primary", { href: map, "data-testid": "back-to-map" }, "Back to the map"),
  );
}

/** @param {Booking} booking */
function facts(booking) {
  /** @type {[string, string|null|undefined][]} */
  const rows = [
    ["Booking", booking.id],
    ["Reference", booking.reference],
    ["Confirmed", dateAndTime(booking.confirmed_at ?? booking.created_at)],
  ];
  const shown = rows.filter(([, value]) => value);
  return el(
    "dl",
    {},
    ...shown.flatMap(([name, value]) => [
      el("dt", {}, name),
      el("dd", { "data-testid": `booking-${name.toLowerCase()}` }, value),
    ]),
  );
}

/** @typedef {{name: string, note: string, quantity: number, price: number, cancelled: boolean}} TicketLine */

/** Seats stand alone, places of one area at one price together. */
function grouped(/** @type {Booking} */ booking, /** @type {Plan|null} */ plan) {
  /** @type {Map<string, TicketLine>} */
  const lines = new Map();
  for (const line of booking.lines) {
    const cancelled = line.state === "cancelled";
    const key = line.area ? `${line.area}/${line.price}/${cancelled}` : `seat/${line.seat}`;
    const known = lines.get(key);
    if (known) known.quantity += 1;
    else lines.set(key, { ...named(line, plan), quantity: 1, price: line.price, cancelled });
  }
  return [...lines.values()];
}

/** @param {Line} line @param {Plan|null} plan */
function named(line, plan) {
  const seat = plan?.indexOf.get(line.seat ?? "");
  if (!plan || (seat === undefined && !line.area))
    return { name: line.seat ?? line.area ?? "", note: "" };
  if (line.area || seat === undefined) {
    const area = plan.areaOf(line.area ?? "");
    return { name: plan.unitName(line), note: plan.categories[area?.category ?? 0]?.name ?? "" };
  }
  const parts = [plan.zoneNameOf(seat), plan.categories[plan.category[seat]].name];
  return { name: plan.nameOf(seat), note: [...new Set(parts.filter(Boolean))].join(" · ") };
}

/** @param {TicketLine} line @param {string} currency */
function lineElement({ name, note, quantity, price, cancelled }, currency) {
  const label = quantity > 1 ? `${quantity} × ${name}` : name;
  return el(
    cancelled ? "li.cancelled" : "li",
    {},
    el("span.what", {}, el("strong", {}, label), el("small", {}, cancelled ? "cancelled" : note)),
    el("span.price", {}, money(price * quantity, currency)),
  );
}
