// What the parts of the page read from a state, besides its fields. Pure.

import { heldIn } from "./basket.js";
import { money, sentenceList } from "./format.js";

/** @typedef {import("./state.js").State} State */

/** Whether what is held must be paid here. @param {State} state */
export function mustPay({ payments, hold }) {
  return Boolean(payments.provider) && (hold?.total ?? 1) > 0;
}

/** Whether what costs so much can be bought on this page at all: of a provider's cards it takes those of the demo.
 *  @param {Pick<State, "payments">} state @param {number} total */
export function canBuy({ payments }, total) {
  const { provider, demo_cards, free_sales } = payments;
  return total === 0 || (provider ? demo_cards.length > 0 : free_sales);
}

/** Whether what is wanted is not held yet. @param {State} state */
export const isPending = (state) => !state.wanted.equals(heldIn(state));

/** Whether the best so many can be had only once what is held is given back: the server counts both until the best
 *  ones are ours. Units that were bought may count too; of those the server knows.
 *  @param {Pick<State, "event"|"wanted">} state @param {number} quantity */
export function mustGiveBackFirst({ event, wanted }, quantity) {
  const { units_per_holder_max: held, units_bought_per_holder_max: bought } = event.policy;
  const limit = Math.min(held, bought ?? held);
  return quantity <= limit && wanted.size + quantity > limit;
}

/** Prices of a hold are frozen; what is only wanted yet is shown at the chart's price.
 *  @param {State} state @param {import("./plan.js").Plan} plan */
export function wantedTotal(state, plan) {
  const { hold, wanted } = state;
  if (hold && !isPending(state)) return hold.total;
  let total = 0;
  for (const id of wanted.seats) total += plan.categoryOf(id).price;
  for (const [id, quantity] of wanted.areas) {
    total += quantity * (plan.categories[plan.areaOf(id)?.category ?? 0]?.price ?? 0);
  }
  return total;
}

/**
 * In what the seats that the server chose are less than was asked for: empty if in nothing, or if
 * the shopper has changed them since.
 * @param {State} state @param {import("./plan.js").Plan} plan
 */
export function compromise({ chosen, wanted, event }, plan) {
  if (!chosen?.units.equals(wanted)) return "";
  const kinds = new Set([...wanted.seats].map((id) => plan.categoryOf(id)));
  const names = [...kinds].map(({ name, price }) => `${name} (${money(price, event.currency)})`);
  const apart = chosen.together ? "" : "They are not all side by side: there were no such seats. ";
  const mixed = names.length > 1 ? `They are of different categories: ${sentenceList(names)}.` : "";
  return (apart + mixed).trim();
}
