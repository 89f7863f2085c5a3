// The list of events: what is on, when, from which price, and whether it can be bought now.

import { asAnyone, listAll } from "./api.js";
import { el } from "./dom.js";
import { count, dateAndTime, money, roughly } from "./format.js";
import { drawPoster } from "./poster.js";

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
      ? el("ul.event-list", { "data-testid": "event-list" }, ...events.map(card))
      : el("p.nothing", { "data-testid": "event-list" }, "Nothing is on sale at the moment."),
  );
  return { element, title: "What is on", close: () => {} };
}

/** The next first; what has no date comes last, by name. @param {SaleEvent} a @param {SaleEvent} b */
function byDate(a, b) {
  const at = (/** @type {SaleEvent} */ { starts_at }) => (starts_at ? Date.parse(starts_at) : Infinity);
  return at(a) === at(b) ? a.name.localeCompare(b.name) : at(a) - at(b);
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
        "data-testid": "event-card",
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
          el("span", { "data-testid": "event-free" }, freeOf(event)),
        ),
      ),
    ),
  );
}

/** @param {SaleEvent} event */
function freeOf({ state, free, total }) {
  return state === "cancelled" || total === 0 ? "" : `${count(free)} of ${count(total)} free`;
}

/** @param {SaleEvent} event */
function badgeOf(event) {
  if (event.state === "cancelled") return { kind: "bad", text: "Cancelled" };
  if (event.total > 0 && event.free === 0) {
    return event.held ? { kind: "soon", text: "All taken for now" } : { kind: "bad", text: "Sold out" };
  }
  const opens = event.policy.sale_opens_at;
  if (!event.on_sale) {
    return { kind: "soon", text: opens ? `On sale ${dateAndTime(opens)}` : "Not on sale" };
  }
  return { kind: "good", text: `${roughly(event.policy.hold_ttl_ms)} to decide` };
}
