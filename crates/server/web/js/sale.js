// Whether an event sells now: by its state, its policy and the server's clock.

import { clock } from "./clock.js";

/** @typedef {"open"|"soon"|"closed"|"over"|"cancelled"} Sale */

/** @param {import("./wire.js").SaleEvent} event @returns {Sale} */
export function saleOf({ state, policy, starts_at, on_sale }) {
  const { sale_opens_at: opens, sale_closes_at: closes } = policy;
  if (state === "cancelled") return "cancelled";
  if (opens && (clock.known ? clock.until(opens) > 0 : !on_sale)) return "soon";
  if (closes && (clock.known ? isPast(closes) : !on_sale)) return isPast(starts_at) ? "over" : "closed";
  return "open";
}

/** @param {string|null|undefined} time */
export const isPast = (time) => Boolean(time && clock.known && clock.until(time) === 0);
