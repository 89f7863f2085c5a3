// The list of events: what is on, when, from which price, and whether it can be bought now.

import { asAnyone, listAll } from "./api.js";
import { el } from "./dom.js";
import { count, dateAndTime, money, roughly } from "./format.js";
import { drawPoster } from "./poster.js";
import { isPast, saleOf } from "./sale.js";

/** @typedef {import("./wire.js").SaleEvent} SaleEvent */

export async function openEvents() {
  const events = (await listAll(asAnyone, "GET /v1/events")).sort(byDate);
  const element = el(
    "main.events",
    {},
    el(
      "header.events-head",
      {},
      el("h1", { tabindex: "-1" }, "What is on"),
      el("p", {}, "Pick a seat and it is yours to decide on: held for a moment, sold once."),
    ),
    events.length > 0
      ? el("ul.event-list", { "data-part": "event-list" }, ...events.map(card))
      : el("p.nothing", { "data-part": "event-list" }, "Nothing is on sale at the moment."),
  );
  return { element, title: "What is on", close: () => {} };
}

/** The next first; what has no date after them, by name; what sells no more comes last.
 *  @param {SaleEvent} a @param {SaleEvent} b */
export function byDate(a, b) {
  const at = (/** @type {SaleEvent} */ { starts_at }) => (starts_at ? Date.parse(starts_at) : Infinity);
  const done = Number(isDone(a)) - Number(isDone(b));
  return done || (at(a) === at(b) ? a.name.localeCompare(b.name) : at(a) - at(b));
}

/** @param {SaleEvent} event */
function isDone(event) {
  const sale = saleOf(event);
  return sale === "cancelled" ? isPast(event.starts_at) : sale === "closed" || sale === "over";
}

/** @param {SaleEvent} event */
function card(event) {
  const poster = /** @type {HTMLCanvasElement} */ (el("canvas.poster", { "aria-hidden": "true" }));
  drawPoster(poster, event.id);
  const prices = Object.values(event.prices);
  const least = Math.min(...prices);
  const span =
    prices.length === 0 ? "" : (prices.length > 1 ? "from " : "") + money(least, event.currency);
  const badge = badgeOf(event);
  return el(
    "li",
    {},
    el(
      "a.event-card",
      {
        href: `#/events/${encodeURIComponent(event.id)}`,
        "data-part": "event-card",
        "data-event": event.id,
        "data-state": event.state,
      },
      el("div.poster-frame", {}, poster, el(`span.badge.${badge.kind}`, {}, badge.text)),
      el(
        "div.event-text",
        {},
        el("h2", {}, event.name),
        el("p.when", {}, dateAndTime(event.starts_at) || "Any time"),
        el(
          "p.facts",
          {},
          el("strong", {}, span),
          el("span", { "data-part": "event-free" }, freeOf(event)),
        ),
      ),
    ),
  );
}

/** @param {SaleEvent} event */
export function freeOf(event) {
  const { free, total } = event;
  const sells = ["open", "soon"].includes(saleOf(event));
  return sells && total > 0 ? `${count(free)} of ${count(total)} free` : "";
}

/** @param {SaleEvent} event */
export function badgeOf(event) {
  const sale = saleOf(event);
  if (sale === "cancelled") return { kind: "bad", text: "Cancelled" };
  if (sale === "over") return { kind: "soon", text: "Over" };
  if (sale === "closed") return { kind: "soon", text: "Sale closed" };
  if (event.total > 0 && event.free === 0) {
    return event.held ? { kind: "soon", text: "All taken for now" } : { kind: "bad", text: "Sold out" };
  }
  if (sale === "soon") return { kind: "soon", text: `On sale ${dateAndTime(event.policy.sale_opens_at)}` };
  return { kind: "good", text: `${roughly(event.policy.hold_ttl_ms)} to decide` };
}
