// The ways to choose beside clicking seats: best together, areas by quantity, limits.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "./stage.mjs";

const stage = Stage.set();
const MIXED = {
  chart: {
    format: "seats",
    seats: ["A-1", "A-2", "A-3", "B-1", "B-2", "B-3"].map((seat) => ({
      seat,
      category: seat.startsWith("A") ? "Premium" : "Standard",
    })),
    areas: [{ area: "floor", capacity: 5, category: "Standing" }],
  },
  prices: { Premium: 9000, Standard: 4500, Standing: 2000 },
};

test("the best two together are neighbours, of the category that was asked for", async (t) => {
  const event = await stage.server.event(MIXED);
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.part("best-category").selectOption("Standard");
  await shopper.part("best-together").click();
  await shopper.until(() => window.__soldonce.state().hold);
  await shopper.settled();
  const first = await shopper.held();
  assert.ok(["B-1,B-2", "B-2,B-3"].includes(first.join()), first.join());

  // Asked again for three of the other category: they take the place of the two.
  await shopper.part("best-plus").click();
  await shopper.part("best-category").selectOption("Premium");
  await shopper.part("best-together").click();
  await shopper.holds("A-1", "A-2", "A-3");
  await shopper.seatIs("B-2", "free");
});

test("best together says so when there are not enough", async (t) => {
  const event = await stage.server.event(MIXED);
  const shopper = await stage.shopper(t);
  shopper.foresee(409);
  await shopper.visit(event);
  await shopper.press("A-2");
  await shopper.part("best-category").selectOption("Premium");
  const plus = shopper.part("best-plus");
  await plus.click();
  await plus.click();
  await shopper.part("best-together").click();
  assert.equal(await shopper.part("refusal").getAttribute("data-code"), "unit_unavailable");
  assert.deepEqual(await shopper.held(), ["A-2"]);
});

test("places of an area are held by quantity, counted on every screen", async (t) => {
  const event = await stage.server.event(MIXED);
  const [shopper, other] = [await stage.shopper(t), await stage.shopper(t)];
  await other.visit(event);
  await shopper.visit(event);
  const plus = shopper.part("area-floor-plus");
  for (let k = 0; k < 3; k += 1) await plus.click();
  await shopper.holds("floor", "floor", "floor");
  assert.equal(await shopper.part("total").innerText(), "€60.00");
  await other.until(() => window.__soldonce.state().areas.floor.free === 2);
  assert.match(await other.part("area-floor-free").innerText(), /^2 left/);

  await shopper.part("area-floor-minus").click();
  await shopper.holds("floor", "floor");
  await other.until(() => window.__soldonce.state().areas.floor.free === 3);
  await shopper.press("A-1");
  await shopper.holds("A-1", "floor", "floor");
  await shopper.confirm();
  assert.equal(await shopper.part("booking-total").innerText(), "€130.00");
  await other.until(() => window.__soldonce.state().areas.floor.sold === 2);
});

test("an area that fills up meanwhile says how many are left", async (t) => {
  const event = await stage.server.event(MIXED);
  const shopper = await stage.shopper(t);
  shopper.foresee(409);
  await shopper.visit(event);
  let sold = false;
  await shopper.page.route(/\/holds$/, async (route) => {
    const units = [{ area: "floor", quantity: 4 }];
    if (!sold) await stage.server.done("POST", `/v1/events/${event}/sales`, { holder: "box", units });
    sold = true;
    await route.continue();
  });
  // Twice within one task, so that the page asks for two at once.
  await shopper.page.evaluate(() => {
    const plus = document.querySelector('[data-testid="area-floor-plus"]');
    plus.click();
    plus.click();
  });
  assert.match(await shopper.part("refusal").innerText(), /Only 1 place left/);
  await shopper.settled();
  assert.deepEqual(await shopper.held(), []);
  await shopper.part("area-floor-plus").click();
  await shopper.holds("floor");
});

test("a drag moves the map with the pointer, and chooses nothing", async (t) => {
  const chart = { format: "grid", rows: 40, seats_per_row: 60, category: "Standard" };
  const event = await stage.server.event({ chart });
  const shopper = await stage.shopper(t);
  const { mouse } = shopper.page;
  await shopper.visit(event);
  const { x, y } = await shopper.pointOf("N-30");
  await mouse.move(x, y);
  const { scale } = await shopper.state();
  await mouse.wheel(0, -300);
  await shopper.until((before) => window.__soldonce.state().scale > before, scale);
  const from = await shopper.pointOf("N-30");
  await mouse.move(from.x, from.y);
  await mouse.down();
  await mouse.move(from.x + 40, from.y + 20);
  await mouse.move(from.x + 80, from.y - 60);
  await mouse.up();
  const to = await shopper.pointOf("N-30");
  assert.deepEqual([Math.round(to.x - from.x), Math.round(to.y - from.y)], [80, -60]);
  await shopper.settled();
  assert.deepEqual(await shopper.held(), []);
});

test("more than the event allows at a time is refused in words", async (t) => {
  const event = await stage.server.event({}, { units_per_hold_max: 2 });
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("A-1", "A-2", "A-3");
  assert.deepEqual(await shopper.held(), ["A-1", "A-2"]);
  assert.match(await shopper.part("refusal").innerText(), /At most 2/);
  await shopper.part("dismiss").click();
  await shopper.part("refusal").waitFor({ state: "detached" });
});

test("a choice that would leave a single seat alone is refused where the event says so", async (t) => {
  const event = await stage.server.event({}, { adjacency: "no_orphan" });
  const shopper = await stage.shopper(t);
  shopper.foresee(409);
  await shopper.visit(event);
  await shopper.press("A-2");
  assert.equal((await shopper.state()).refusal, "adjacency_refused");
  assert.deepEqual(await shopper.held(), []);
});

test("an event that is not on sale yet tells when it will be", async (t) => {
  const opens = new Date(Date.now() + 3_600_000).toISOString();
  const event = await stage.server.event({}, { sale_opens_at: opens });
  const shopper = await stage.shopper(t);
  shopper.foresee(409);
  await shopper.visit(event);
  assert.match(await shopper.part("sale-note").innerText(), /The sale opens on .*, in \d+:\d\d/);
  await shopper.press("A-1");
  assert.equal((await shopper.state()).refusal, "not_on_sale");
});
