// What stands on the ticket of a booking: its state in words, its lines, and its money.

import { el } from "./dom.js";
import { count, dateAndTime, money, plural } from "./format.js";

/** @typedef {import("./wire.js").Booking} Booking */
/** @typedef {import("./wire.js").Line} Line */
/** @typedef {import("./wire.js").SaleEvent} SaleEvent */
/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {{name: string, note: string, quantity: number, price: number, state: string, unit: import("./wire.js").UnitRequest}} TicketLine
 *  `price` and `unit` are those of one. */

/** A bank is at it, so money may still come. */
const AT_BANK = ["action_required", "processing", "authorised"];

/** Whether it owns what its lines call sold: in any other state they say so too early or too late.
 *  @param {Booking} booking */
export const owns = ({ state }) => state === "confirmed" || state === "partly_cancelled";

/** Whether anything about it moves by itself. @param {Booking} booking */
export function isOpen(booking) {
  const { state, payment } = booking;
  if (state === "pending_payment" || state === "needs_refund") return true;
  if (!payment) return false;
  const undecided = payment.state === "created" || AT_BANK.includes(payment.state);
  return undecided || comingBack(booking) > 0;
}

/** What went back: by the provider, or by staff in another way. @param {Booking["payment"]} payment */
const sentBack = (payment) => (payment?.refunded ?? 0) + (payment?.elsewhere ?? 0);

/** What was taken for lines that are given up and is not back yet. @param {Booking} booking */
function comingBack({ lines, payment, state }) {
  // What is carried pays for another booking now.
  const kept = (payment?.captured ?? 0) - sentBack(payment) - (payment?.carried ?? 0);
  const sold = lines.filter((line) => line.state === "sold");
  const owed = sold.reduce((sum, line) => sum + line.price, 0);
  return state === "pending_payment" ? 0 : Math.max(0, kept - owed);
}

/** What goes back for lines of this price: of what was paid for the booking, also by one that it took the place of.
 *  @param {Booking} booking @param {number} price */
export function backFor({ payment, exchange }, price) {
  if (!payment) return 0;
  const { amount = 0, carried = 0 } = payment;
  return Math.min(price, amount - sentBack(payment) + (exchange?.credit ?? 0) - carried);
}

/** Bookings whose hold had ended, as this page saw, before their money came. @type {Set<string>} */
export const late = new Set();

/** Whether its event was called off while it still has seats there.
 *  @param {Booking} booking @param {SaleEvent|null|undefined} event */
export const isCalledOff = (booking, event) => owns(booking) && event?.state === "cancelled";

/**
 * The state in a few words, and what it means for the money.
 * @param {Booking} booking @param {boolean} wasLate  The page saw it expire before.
 * @param {SaleEvent|null|undefined} event @returns {{title: string, text: string}}
 */
export function headline(booking, wasLate, event) {
  const { state, payment } = booking;
  if (isCalledOff(booking, event)) return { title: "This event was cancelled", text: calledOffWords(booking) };
  const undecided = payment ? AT_BANK.includes(payment.state) : false;
  switch (state) {
    case "confirmed":
      return {
        title: "It is yours",
        text: wasLate ? "The money came late, but the seats were still free." : "",
      };
    case "pending_payment":
      return {
        title: "Waiting for payment",
        text: "The seats are kept while you pay. Go back to the map to go on with it.",
      };
    case "partly_cancelled":
      return { title: "Partly cancelled", text: `${keptWords(booking)} ${returned(booking)}`.trim() };
    case "cancelled":
      return (payment?.carried ?? 0) > 0
        ? { title: "Exchanged", text: "What was paid for it counts for what you took instead." }
        : { title: "Cancelled", text: returned(booking) };
    case "failed":
      return {
        title: "Not paid",
        text: undecided ? lateWords(event) : unpaidWords(booking, "The payment did not go through. "),
      };
    case "expired":
      return {
        title: "Your time ran out",
        text: undecided ? `The bank has not answered yet. ${lateWords(event)}` : unpaidWords(booking, ""),
      };
    case "needs_refund":
      return {
        title: "Your money goes back",
        text: "It came too late for the seats. Nothing is left to do for you.",
      };
    case "refunded":
      return {
        title: "Your money is back",
        text:
          (payment?.captured ?? 0) > 0
            ? "It came too late for the seats, and was sent back in full."
            : "It came too late for the seats. It was never taken: the bank has let it go.",
      };
    default:
      return { title: state, text: "" };
  }
}

/** @param {Booking} booking */
function calledOffWords({ payment, total }) {
  if (!payment) return total > 0 ? "Please ask the organiser about the money." : "";
  const { amount = total } = payment;
  const back = sentBack(payment);
  const isBack = back > 0 && back >= amount;
  return isBack ? "Your money was sent back." : "Your money goes back the way it was paid once this booking is cancelled.";
}

/** What becomes of money that comes too late, by the rule of the event.
 *  @param {SaleEvent|null|undefined} event */
export function lateWords(event) {
  const goesBack = event && event.policy.late_payment !== "if_still_free";
  return goesBack
    ? "If the bank still says yes, the money goes straight back."
    : "If the bank still says yes, the seats are yours if they are free; otherwise the money goes straight back.";
}

/** What became of the money where nothing was bought. @param {Booking} booking @param {string} why */
function unpaidWords(booking, why) {
  const taken = booking.payment?.captured ?? 0;
  return taken > 0 ? `The money came too late. ${returned(booking)}` : `${why}Nothing was charged.`;
}

/** "2 places are still yours, 1 was given back." @param {Booking} booking */
function keptWords({ lines }) {
  const sold = lines.filter((line) => line.state === "sold").length;
  const gone = lines.length - sold;
  const kept = `${plural(sold, "place")} ${sold === 1 ? "is" : "are"} still yours`;
  return `${kept}, ${count(gone)} ${gone === 1 ? "was" : "were"} given back.`;
}

/** @param {Booking} booking */
function returned(booking) {
  const { payment, currency } = booking;
  if (!payment) return "";
  const coming = comingBack(booking);
  if (coming > 0) return `${money(coming, currency)} is on its way back.`;
  const back = sentBack(payment);
  if (back > 0) return `${money(back, currency)} was sent back.`;
  return AT_BANK.includes(payment.state) ? "The money is being settled." : "Nothing was taken.";
}

/** Total, and what was paid and sent back. @param {Booking} booking */
export function sums(booking) {
  const { payment, exchange, currency, total } = booking;
  /** @type {[string, string, number][]} */
  const rows = [];
  const partly = booking.state === "partly_cancelled";
  const sold = booking.lines.filter((line) => line.state === "sold");
  const kept = sold.reduce((sum, line) => sum + line.price, 0);
  if (partly) rows.push(["total", "Booked first", total], ["given-back", "Given back", kept - total]);
  if (payment) {
    const { captured = 0, carried = 0, state } = payment;
    const [coming, back] = [comingBack(booking), sentBack(payment)];
    const credit = exchange?.credit ?? 0;
    if (credit > 0) rows.push(["credit", "Paid before, for what you gave back", credit]);
    if (captured > 0) rows.push(["paid", "Paid", captured]);
    else if (state === "authorised") rows.push(["reserved", "Reserved at the bank", payment.amount ?? total]);
    if (carried > 0) rows.push(["carried", "Counts for what you took instead", -carried]);
    if (coming > 0) rows.push(["coming-back", "On its way back", -coming]);
    if (back > 0) rows.push(["sent-back", "Sent back", -back]);
  }
  const row = (/** @type {[string, string, number]} */ [id, name, amount]) =>
    el(
      "div.sum.minor-sum",
      {},
      el("span", {}, name),
      el("strong", { "data-part": `booking-${id}` }, signed(amount, currency)),
    );
  return [
    el(
      "div.sum",
      {},
      el("span", {}, partly ? "Kept" : "Total"),
      el(
        "strong.total",
        { "data-part": partly ? "booking-kept" : "booking-total" },
        money(partly ? kept : total, currency),
      ),
    ),
    ...rows.map(row),
  ];
}

/** @param {number} amount @param {string} currency */
function signed(amount, currency) {
  return amount < 0 ? `− ${money(-amount, currency)}` : money(amount, currency);
}

/** @param {Booking} booking */
export function facts(booking) {
  /** @type {[string, string|null|undefined][]} */
  const rows = [
    ["Booking", booking.id],
    ["Reference", booking.reference],
    [booking.confirmed_at ? "Confirmed" : "Begun", dateAndTime(booking.confirmed_at ?? booking.created_at)],
  ];
  const shown = rows.filter(([, value]) => value);
  return el(
    "dl",
    {},
    ...shown.flatMap(([name, value]) => [
      el("dt", {}, name),
      el("dd", { "data-part": `booking-${name.toLowerCase()}` }, value),
    ]),
  );
}

/** Seats stand alone, places of one area at one price together. */
export function grouped(/** @type {Booking} */ booking, /** @type {Plan|null} */ plan) {
  /** @type {Map<string, TicketLine>} */
  const lines = new Map();
  for (const line of booking.lines) {
    const state = line.state ?? "";
    const key = line.area ? `${line.area}/${line.price}/${state}` : `${line.seat}/${state}`;
    const unit = line.area ? { area: line.area, quantity: 1 } : { seat: line.seat ?? "" };
    const known = lines.get(key);
    if (known) known.quantity += 1;
    else lines.set(key, { ...named(line, plan), quantity: 1, price: line.price, state, unit });
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
  return { name: plan.nameOf(seat), note: plan.kindOf(seat).join(" · ") };
}

/** @param {TicketLine} line @param {string} currency @param {(() => void)|null} cancel */
export function lineElement({ name, note, quantity, price, state }, currency, cancel) {
  const label = quantity > 1 ? `${quantity} × ${name}` : name;
  const cancelled = state === "cancelled";
  const text = quantity > 1 ? "Cancel one" : "Cancel";
  return el(
    cancelled ? "li.cancelled" : "li",
    {},
    el("span.what", {}, el("strong", {}, label), el("small", {}, cancelled ? "cancelled" : note)),
    el("span.price", {}, money(price * quantity, currency)),
    cancel &&
      state === "sold" &&
      el(
        "button.quiet.cancel-line",
        { type: "button", "aria-label": `${text}: ${name}`, "data-part": `cancel-${name}`, onclick: cancel },
        text,
      ),
  );
}
