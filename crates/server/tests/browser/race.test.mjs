// Several shoppers, one seat: what each of them sees.

import assert from "node:assert/strict";
import { test } from "node:test";
import { meanwhile } from "./shopper.mjs";
import { Stage } from "./stage.mjs";

const NEW_HOLD = /\/v1\/events\/[^/]+\/holds$/;
const stage = Stage.set();

/** Lets no shopper on before all have come. @param {number} expected */
function barrier(expected) {
  let open = () => {};
  const opened = /** @type {Promise<void>} */ (new Promise((resolve) => (open = resolve)));
  let come = 0;
  return () => {
    come += 1;
    if (come === expected) open();
    return opened;
  };
}

test("two shoppers race for one seat: one holds it, the other is offered another", async (t) => {
  const event = await stage.server.event();
  const shoppers = await Promise.all([stage.shopper(t), stage.shopper(t)]);
  const start = barrier(shoppers.length);
  for (const shopper of shoppers) {
    shopper.foresee(409);
    await shopper.visit(event);
    await meanwhile(shopper, "POST", NEW_HOLD, start);
  }
  await Promise.all(shoppers.map((shopper) => shopper.press("B-5")));

  const states = await Promise.all(shoppers.map((shopper) => shopper.state()));
  const winners = shoppers.filter((_, k) => states[k].hold);
  const losers = shoppers.filter((_, k) => states[k].refusal === "unit_unavailable");
  assert.deepEqual([winners.length, losers.length], [1, 1]);
  assert.deepEqual(await winners[0].held(), ["B-5"]);
  assert.deepEqual(await losers[0].held(), []);

  await losers[0].page.unroute(NEW_HOLD);
  await losers[0].part("refusal-alternative").click();
  await losers[0].settled();
  const [alternative] = await losers[0].held();
  assert.match(alternative, /^[A-D]-\d+$/);
  assert.notEqual(alternative, "B-5");
  await winners[0].seatIs(alternative, "held");
});

test("a seat lost to a quicker shopper is refused, and the alternative is one click away", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  const rival = await stage.server.rival();
  shopper.foresee(409);
  await shopper.visit(event);
  let taken = false;
  await meanwhile(shopper, "POST", NEW_HOLD, async () => {
    if (!taken) await rival.hold(event, "C-4", "C-5");
    taken = true;
  });
  await shopper.press("C-4");
  const refusal = shopper.part("refusal");
  assert.equal(await refusal.getAttribute("data-code"), "unit_unavailable");
  await shopper.reads("refusal", /C seat 4 is gone/i);
  await shopper.seatIs("C-4", "held");

  await shopper.part("refusal-alternative").click();
  await shopper.settled();
  assert.equal((await shopper.held()).length, 1);
  await refusal.waitFor({ state: "detached" });
});

test("when one of two is lost, what was held before stays held", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  const rival = await stage.server.rival();
  shopper.foresee(409);
  await shopper.visit(event);
  await shopper.press("A-1");
  const { hold } = await shopper.state();
  await meanwhile(shopper, "PATCH", /\/v1\/holds\//, () => rival.hold(event, "A-2"));
  await shopper.press("A-2");
  const state = await shopper.state();
  assert.equal(state.refusal, "unit_unavailable");
  assert.equal(state.hold.id, hold.id);
  assert.deepEqual(await shopper.held(), ["A-1"]);
});

test("what one shopper holds, releases and books shows on the other screen", async (t) => {
  const event = await stage.server.event();
  const [shopper, other] = await Promise.all([
    stage.shopper(t),
    stage.shopper(t),
  ]);
  await shopper.visit(event);
  await other.visit(event);
  await shopper.press("D-1", "D-2");
  await other.seatIs("D-1", "held");
  await shopper.part("release").click();
  await other.seatIs("D-1", "free");
  await shopper.press("D-3");
  await shopper.confirm();
  await other.seatIs("D-3", "sold");
  const { counts } = await other.state();
  assert.deepEqual(counts, { free: 39, held: 0, sold: 1, blocked: 0 });
});

test("a seat the organiser blocks is not for sale on the open map", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  const units = [{ seat: "A-7" }];
  await stage.server.done("POST", `/v1/events/${event}/block`, { units, reason: "camera" });
  await shopper.seatIs("A-7", "blocked");
  await shopper.press("A-7");
  assert.deepEqual(await shopper.held(), []);
  await stage.server.done("POST", `/v1/events/${event}/unblock`, { units, reason: "camera" });
  await shopper.seatIs("A-7", "free");
});
