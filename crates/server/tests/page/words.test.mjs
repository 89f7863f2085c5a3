// What the page says: times, and which keys it leaves to the browser.

import "./browser.mjs";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { clock } from "../../web/js/clock.js";
import { badgeOf, byDate, freeOf } from "../../web/js/events.js";
import { dateAndTime } from "../../web/js/format.js";
import { endingWords, words } from "../../web/js/refusal.js";
import { SeatGrid } from "../../web/js/seatgrid.js";
import { backFor, headline, isOpen } from "../../web/js/ticket.js";

const openapi = JSON.parse(readFileSync(new URL("../../openapi.json", import.meta.url), "utf8"));

test("a time is told with its zone", () => {
  assert.match(dateAndTime("2030-01-01T12:00:00Z"), /2030, .*\d:\d\d.* (GMT|[A-Z]{3,5})/);
});

test("Ctrl leads through the seats by arrows, Home and End; all else with it is the browser's", () => {
  /** Whether the grid takes a key for itself. @param {string} key */
  const takes = (key) => {
    let taken = false;
    const event = { key, ctrlKey: true, altKey: false, metaKey: false, preventDefault: () => (taken = true) };
    const grid = { goalOf: () => 1, actionOf: () => () => {}, focus: () => {} };
    SeatGrid.prototype.key.call(/** @type {any} */ (grid), /** @type {any} */ (event));
    return taken;
  };
  const keys = ["ArrowLeft", "ArrowDown", "Home", "End", "+", "=", "-", "0", "n", "PageDown", "Enter"];
  assert.deepEqual(keys.filter(takes), ["ArrowLeft", "ArrowDown", "Home", "End"]);
});

test("a key that is kept down chooses a seat once, and moves and zooms on", () => {
  /** @type {string[]} */ const done = [];
  const target = { toggle: () => done.push("toggle"), zoom: (/** @type {string} */ way) => done.push(way) };
  const { actionOf } = SeatGrid.prototype;
  const grid = { seat: 0, target, actionOf, goalOf: SeatGrid.prototype.goalOf, focus: () => done.push("move") };
  const plan = { rowOf: [0], rows: [{ first: 0, end: 2 }], neighbour: () => 1 };
  for (const key of ["Enter", " ", "ArrowRight", "+"]) {
    let taken = 0;
    for (const repeat of [false, true, true]) {
      const event = { key, repeat, ctrlKey: false, altKey: false, metaKey: false, preventDefault: () => (taken += 1) };
      SeatGrid.prototype.key.call(/** @type {any} */ ({ ...grid, plan }), /** @type {any} */ (event));
    }
    assert.equal(taken, 3, "the page does not scroll");
  }
  assert.deepEqual(done, ["toggle", "toggle", "move", "move", "move", "in", "in", "in"]);
});

test("a ticket of an event that was called off says so, and what becomes of the money", () => {
  const event = /** @type {any} */ ({ state: "cancelled" });
  const booking = (/** @type {object} */ facts) =>
    /** @type {any} */ ({ state: "confirmed", total: 4500, lines: [{ state: "sold", price: 4500 }], ...facts });
  const said = (/** @type {object} */ facts) => headline(booking(facts), false, event);
  assert.equal(headline(booking({}), false, null).title, "It is yours");
  assert.equal(said({}).title, "This event was cancelled");
  assert.match(said({}).text, /organiser/);
  assert.equal(said({ total: 0 }).text, "");
  const paid = { state: "captured", amount: 4500, captured: 4500 };
  assert.match(said({ payment: paid }).text, /goes back the way it was paid once this booking is cancelled/);
  assert.match(said({ payment: { ...paid, refunded: 4500 } }).text, /was sent back/);
  assert.equal(said({ state: "cancelled" }).title, "Cancelled");
});

test("money that staff settled elsewhere is back, and is waited for no more", () => {
  const payment = { state: "captured", amount: 4500, captured: 4500, refunded: 0 };
  const line = { state: "cancelled", price: 4500 };
  const booking = (/** @type {object} */ more) =>
    /** @type {any} */ ({ state: "cancelled", currency: "EUR", lines: [line], payment: { ...payment, ...more } });
  assert.match(headline(booking({}), false, null).text, /45.00.* is on its way back/);
  assert.equal(isOpen(booking({})), true);
  const settled = booking({ elsewhere: 4500 });
  assert.match(headline(settled, false, null).text, /45.00.* was sent back/);
  assert.equal(isOpen(settled), false);
});

test("what goes back for a cancelled line is what was paid for it, also by the booking that was exchanged", () => {
  const back = (/** @type {object|null} */ payment, /** @type {object} */ more, /** @type {number} */ price) =>
    backFor(/** @type {any} */ ({ payment, ...more }), price);
  const difference = { state: "captured", amount: 4500, captured: 4500 };
  assert.equal(back(difference, { exchange: { credit: 4500 } }, 9000), 9000);
  assert.equal(back(difference, { exchange: { credit: 4500 } }, 4500), 4500);
  assert.equal(back({ ...difference, carried: 4000 }, {}, 4500), 500);
  assert.equal(back({ ...difference, refunded: 1000, elsewhere: 500 }, {}, 4500), 3000);
  assert.equal(back(null, {}, 4500), 0);
});

test("late money is promised seats where the event gives them, and what was taken is told", () => {
  const lines = [{ state: "pending", price: 4500 }];
  const said = (/** @type {string} */ late_payment, /** @type {object} */ payment) => {
    const booking = /** @type {any} */ ({ state: "expired", currency: "EUR", lines, payment });
    return headline(booking, false, /** @type {any} */ ({ state: "open", policy: { late_payment } })).text;
  };
  assert.match(said("if_still_free", { state: "processing" }), /seats are yours if they are free/);
  for (const rule of ["refuse", "refund"]) {
    assert.match(said(rule, { state: "processing" }), /says yes, the money goes straight back/);
  }
  assert.match(said("refuse", { state: "captured", captured: 4500 }), /too late.*45.00.* is on its way back/);
  assert.match(said("refuse", { state: "refunded", captured: 4500, refunded: 4500 }), /too late.*45.00.* was sent back/);
  assert.equal(said("refuse", { state: "failed" }), "Nothing was charged.");
});

test("the list says what sells no more, and has it last", () => {
  const policy = { hold_ttl_ms: 60_000, sale_closes_at: "2030-01-01T12:00:00Z" };
  const unknown = /** @type {any} */ ({ name: "", policy, total: 2, free: 1, on_sale: false });
  assert.equal(badgeOf(unknown).text, "Sale closed", "before the server's clock is known");
  clock.learn("2030-01-02T12:00:00Z", performance.now(), performance.now());
  const [before, after] = ["2030-01-01T12:00:00Z", "2030-01-03T12:00:00Z"];
  const event = (/** @type {string} */ name, /** @type {string} */ starts_at, /** @type {object} */ policy) =>
    /** @type {any} */ ({ name, starts_at, policy: { hold_ttl_ms: 60_000, ...policy }, total: 2, free: 1 });
  const opened = { sale_opens_at: before, sale_closes_at: after };
  const events = [
    event("over", before, { ...opened, sale_closes_at: before }),
    event("closed", after, { ...opened, sale_closes_at: before }),
    event("soon", after, { sale_opens_at: after }),
    event("open", after, opened),
  ];
  const told = events.sort(byDate).map((one) => `${one.name}: ${badgeOf(one).text} ${freeOf(one)}`);
  assert.match(told[1], /^soon: On sale .*2030.* 1 of 2 free$/);
  assert.deepEqual([told[0], ...told.slice(2)], ["open: 1 minute to decide 1 of 2 free", "over: Over ", "closed: Sale closed "]);
});

test("no code of the API speaks to shoppers in the words for programs", () => {
  /** @type {{code: string}[]} */ const problems = openapi["x-problems"];
  assert.ok(problems.length > 30);
  const told = problems.filter(({ code }) => {
    const { text } = words(/** @type {any} */ ({ code, detail: "for programs" }), () => "Seat 1");
    return text === "" || text === "for programs";
  });
  assert.deepEqual(told, []);
});

test("a limit is told with what counts against it", () => {
  const text = (/** @type {object} */ problem) => words(/** @type {any} */ (problem), () => "Seat 1").text;
  const spent = { code: "budget_exceeded", limit: 4, used: 3 };
  assert.match(text({ ...spent, budget: "held" }), /At most 4 held .* you hold 3\. Buy or release/);
  assert.match(text({ ...spent, budget: "bought" }), /At most 4 for each buyer, and you have 3/);
  assert.match(text({ code: "too_many_units", limit: 2 }), /At most 2 at a time/);
  assert.match(text({ code: "budget_exceeded" }), /limit|release/);
});

test("the end of a hold promises nothing that is not sold any more", () => {
  assert.match(endingWords("expired", true).text, /on sale again/);
  assert.doesNotMatch(endingWords("expired", false).text, /on sale again/);
});

test("an answer that excludes what is known of the time replaces it, as after a sleep that was not counted", () => {
  const start = performance.now();
  const at = (/** @type {number} */ ms) => Date.parse("2030-01-05T12:00:00Z") + ms;
  const learn = (/** @type {number} */ ms, /** @type {number} */ sent, /** @type {number} */ took) =>
    clock.learn(new Date(at(ms)).toISOString(), start + sent, start + sent + took);
  clock.distrust();
  learn(0, 0, 20);
  learn(1_030, 1_000, 100);
  assert.equal(Math.round(clock.offset + start), at(-10), "less exact, and agrees");
  learn(300_000, 2_000, 100);
  assert.equal(Math.round(clock.offset + start), at(297_950));
});
