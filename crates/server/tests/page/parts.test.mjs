// What parts of the page show.

import "./browser.mjs";
import "./document.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { BestTogether } from "../../web/js/choosing.js";
import { Plan } from "../../web/js/plan.js";
import { EVENT, FakeServer } from "./server.mjs";
import { Shopper } from "./shopper.mjs";

const seats = Array.from({ length: 8 }, (_, k) => ({ seat: `A-${k + 1}`, label: `${k + 1}`, category: "S" }));
const CHART = { format: "soldonce", name: "Hall", zones: [{ zone: "z", name: "Z", rows: [{ row: "A", seats }] }], areas: [] };

test("the best seats are not asked for where the held ones would make them too many", () => {
  /** @type {[number, number|null, string[], number, string][]} */ const cases = [
    [4, null, ["A-1", "A-2"], 2, "Takes the place of"],
    [4, null, ["A-1", "A-2"], 3, "give them back first"],
    [9, 4, ["A-1", "A-2"], 3, "give them back first"],
    [4, 9, [], 4, "hidden"],
    // More than the limit by themselves: the server says so.
    [2, null, ["A-1"], 3, "Takes the place of"],
  ];
  for (const [held, bought, own, quantity, said] of cases) {
    const shopper = new Shopper(new FakeServer(8));
    const policy = { ...EVENT.policy, units_per_holder_max: held, units_bought_per_holder_max: bought };
    shopper.dispatch({ type: "terms", event: { ...EVENT, policy } });
    shopper.toggle(...own);
    shopper.settle();
    const best = new BestTogether(new Plan(/** @type {any} */ (CHART), { S: 1 }), /** @type {any} */ (shopper), () => {});
    best.quantity = quantity;
    best.refresh();
    const { button, hint } = best;
    const told = `${quantity} with ${own.length} of ${held}, ${bought}`;
    assert.ok(said === "hidden" ? hint.hidden : !hint.hidden && hint.textContent?.includes(said), told);
    assert.equal(button.disabled, said === "give them back first", told);
    // Given back, they can be had.
    shopper.dispatch({ type: "swap", drop: shopper.state.wanted.requests(), add: [] });
    shopper.settle();
    best.refresh();
    assert.deepEqual([button.disabled, hint.hidden], [false, true], told);
  }
});
