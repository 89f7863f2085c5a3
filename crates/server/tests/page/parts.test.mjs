// What parts of the page show.

import "./browser.mjs";
import "./document.mjs";
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { BestTogether } from "../../web/js/choosing.js";
import { clock } from "../../web/js/clock.js";
import { openMine } from "../../web/js/mine.js";
import { Plan } from "../../web/js/plan.js";
import { lasting } from "../../web/js/storage.js";
import { EVENT, FakeServer } from "./server.mjs";
import { Shopper } from "./shopper.mjs";

const seats = Array.from({ length: 8 }, (_, k) => ({ seat: `A-${k + 1}`, label: `${k + 1}`, category: "S" }));
const ZONE = { zone: "z", name: "Z", rows: [{ row: "A", seats }] };
const PLAN = new Plan(/** @type {any} */ ({ format: "soldonce", name: "Hall", zones: [ZONE], areas: [] }), { S: 1 });

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
    const best = new BestTogether(PLAN, /** @type {any} */ (shopper), () => {});
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

test("a hold whose time is over is not listed as held any more, and its heading goes with the last one", async () => {
  const at = (/** @type {number} */ second) => `2030-01-01T12:00:${second}Z`;
  const one = { event: "evening", units: [{}], total: 0, currency: "EUR" };
  const hold = (/** @type {number} */ second) => ({ ...one, expires_at: at(second) });
  /** @type {Record<string, object>} */ const answers = {
    "/v1/events": { events: [{ id: "evening", name: "Evening" }] },
    "/v1/holds": { holds: [hold(20), hold(30)] },
    "/v1/bookings": { bookings: [] },
  };
  mock.method(globalThis, "fetch", async (/** @type {string} */ path) => Response.json(answers[path]));
  let tick = () => {};
  mock.method(globalThis, "setInterval", (/** @type {() => void} */ act) => (tick = act));
  lasting.set("soldonce.session", "open");
  const page = await openMine();
  mock.restoreAll();
  const { childNodes: [title, ...parts] } = /** @type {any} */ (page.element);
  /** @param {any} node @returns {string} */
  const textOf = (node) => (node.hidden ? "" : node.text + node.childNodes.map(textOf).join(""));
  const shownAt = (/** @type {number} */ second) => {
    const now = performance.now();
    clock.distrust();
    clock.learn(at(second), now, now);
    tick();
    return parts.map(textOf).join("");
  };
  const place = "Evening1 place · Free";
  assert.equal(shownAt(10), `Held for you now${place}0:10${place}0:20`);
  parts.find((/** @type {any} */ part) => part.name === "ul").childNodes[0].childNodes[0].focus();
  assert.equal(shownAt(20), `Held for you now${place}0:10`);
  assert.equal(document.activeElement, title);
  assert.equal(shownAt(31), "Nothing here yet. A booking made elsewhere opens by its own link.");
});
