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

test("seats that are not as they were asked for are said to be so before they are paid", async (t) => {
  const apart = {
    ...MIXED,
    chart: { ...MIXED.chart, seats: MIXED.chart.seats.filter(({ seat }) => ["A-1", "A-3", "B-2"].includes(seat)) },
  };
  const event = await stage.server.event(apart);
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.part("best-plus").click();
  await shopper.part("best-together").click();
  await shopper.holds("A-1", "A-3", "B-2");
  for (const place of ["not-as-asked", "compromise"]) {
    await shopper.reads(place, /not all side by side[^]*Premium \(€90\.00\) and Standard \(€45\.00\)/);
  }
  // Looked at, the notice is gone; what is to be paid still says it.
  await shopper.part("dismiss").click();
  await shopper.part("not-as-asked").waitFor({ state: "detached" });
  assert.ok(await shopper.part("compromise").isVisible());
  await shopper.press("B-2");
  await shopper.holds("A-1", "A-3");
  await shopper.part("compromise").waitFor({ state: "hidden" });
});

test("sold out is said of what is sold alone; what is held may come back", async (t) => {
  const chart = { format: "grid", rows: 1, seats_per_row: 2, category: "Standard" };
  const event = await stage.server.event({ chart });
  const shopper = await stage.shopper(t);
  const rival = await stage.server.rival();
  await shopper.visit(event);
  await rival.hold(event, "A-1", "A-2");
  await shopper.seatIs("A-2", "held");
  const says = (/** @type {string} */ text) =>
    shopper.until(
      (wanted) =>
        ["free-count", "category-Standard"].every((id) =>
          document.querySelector(`[data-part="${id}"]`).textContent.includes(wanted),
        ),
      text,
    );
  await says("all taken for now");
  const badge = async () => {
    const list = await stage.shopper(t);
    await list.page.goto("/");
    return list.page.locator(`[data-event="${event}"]`).innerText();
  };
  assert.match(await badge(), /All taken for now[^]*0 of 2 free/);
  const [hold] = (await stage.server.done("GET", "/v1/holds", undefined, rival.session)).holds;
  await stage.server.done("POST", `/v1/holds/${hold.id}/confirm`, {}, rival.session);
  await says("sold out");
  assert.match(await badge(), /Sold out/);
});

test("a seat that is taken says so when it is pressed", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t, { hasTouch: true });
  const rival = await stage.server.rival();
  await shopper.visit(event);
  await rival.hold(event, "B-5");
  await shopper.seatIs("B-5", "held");
  const point = await shopper.pointOf("B-5");
  await shopper.page.touchscreen.tap(point.x, point.y);
  await shopper.reads("tip", /Row B seat 5[^]*€45\.00[^]*held by somebody else for now/);
  // A free one says which it is, and what it costs.
  const free = await shopper.pointOf("B-6");
  await shopper.page.touchscreen.tap(free.x, free.y);
  await shopper.holds("B-6");
  await shopper.reads("tip", /Row B seat 6[^]*€45\.00/);
});

test("a finger takes a small seat by its second touch, once it read which one it is", async (t) => {
  const chart = { format: "grid", rows: 8, seats_per_row: 18, category: "Standard" };
  const event = await stage.server.event({ chart });
  const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
  const shopper = await stage.shopper(t, phone);
  await shopper.visit(event);
  const { touchscreen } = shopper.page;
  const at = (/** @type {string} */ seat) =>
    shopper.until((id) => window.__soldonce.drawn().seats.find((seat) => seat.id === id), seat);
  const side = await shopper.page.evaluate(() => window.__soldonce.seatSide());
  assert.ok(side > 13 && side < 24, `a seat has ${side} pixels`);
  const first = await at("C-7");
  await touchscreen.tap(first.x, first.y);
  await shopper.reads("tip", /Row C seat 7[^]*€45\.00[^]*touch again to hold it/);
  assert.deepEqual((await shopper.state()).wanted, []);
  // Another one is named first as well.
  const second = await at("C-8");
  await touchscreen.tap(second.x, second.y);
  await shopper.reads("tip", /Row C seat 8[^]*touch again to hold it/);
  await touchscreen.tap(second.x, second.y);
  await shopper.holds("C-8");
  await shopper.reads("tip", /Row C seat 8[^]*held by you/);
  // Where seats are large enough the first touch takes them.
  const near = await shopper.pointOf("D-7");
  assert.ok((await shopper.page.evaluate(() => window.__soldonce.seatSide())) >= 24);
  await touchscreen.tap(near.x, near.y);
  await shopper.holds("C-8", "D-7");
});

test("events are listed by date, with what is left of each", async (t) => {
  const day = 24 * 60 * 60 * 1000;
  const at = (/** @type {number} */ days) => new Date(Date.now() + days * day).toISOString();
  const late = await stage.server.event({ name: "Late", starts_at: at(300) });
  const soon = await stage.server.event({ name: "Soon", starts_at: at(1) });
  const ever = await stage.server.event({ name: "Ever", starts_at: undefined });
  const off = await stage.server.event({ name: "Off", starts_at: at(2) });
  await stage.server.done("POST", `/v1/events/${off}/cancel`, {});
  const shopper = await stage.shopper(t);
  await shopper.page.goto("/");
  const cards = shopper.part("event-card");
  await cards.first().waitFor();
  const order = await cards.evaluateAll((all) => all.map(({ dataset }) => dataset.event));
  const mine = order.filter((id) => [late, soon, ever, off].includes(id));
  assert.deepEqual(mine, [soon, off, late, ever]);
  assert.match(await shopper.page.locator(`[data-event="${soon}"]`).innerText(), /40 of 40 free/);
  assert.match(await shopper.page.locator(`[data-event="${off}"]`).innerText(), /Cancelled/);
});

test("what staff change of an event is on open pages at once", async (t) => {
  const event = await stage.server.event({}, { units_per_hold_max: 4 });
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  const note = shopper.part("sale-note");
  const path = `/v1/events/${event}`;
  const opens = new Date(Date.now() + 3_600_000).toISOString();
  await stage.server.done("PATCH", path, { policy: { sale_opens_at: opens, units_per_hold_max: 1 } });
  await note.getByText("The sale opens on").waitFor();
  await shopper.part("best-together").getByText("Hold the best seat").waitFor();
  await shopper.page.locator("#say-polite").getByText("The sale opens on").waitFor();
  const anew = { name: "The second night", policy: { sale_opens_at: null } };
  await stage.server.done("PATCH", path, anew);
  await note.waitFor({ state: "hidden" });
  await shopper.page.locator("h1").getByText("The second night").waitFor();
  await shopper.press("A-1");
  await shopper.holds("A-1");
  await stage.server.done("POST", `${path}/cancel`, {});
  await note.getByText("This event was cancelled").waitFor();
  // What cannot be held again is not offered.
  await shopper.part("ended").waitFor();
  await shopper.seatIs("A-1", "free");
  await shopper.part("hold-again").waitFor({ state: "hidden" });
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
  await shopper.reads("total", "€60.00");
  await other.until(() => window.__soldonce.state().areas.floor.free === 2);
  await other.reads("area-floor-free", /^2 left/);

  await shopper.part("area-floor-minus").click();
  await shopper.holds("floor", "floor");
  await other.until(() => window.__soldonce.state().areas.floor.free === 3);
  await shopper.press("A-1");
  await shopper.holds("A-1", "floor", "floor");
  await shopper.confirm();
  await shopper.reads("booking-total", "€130.00");
  await other.until(() => window.__soldonce.state().areas.floor.sold === 2);
});

test("a place is added while the feed tells of the one before and its answer is on its way", async (t) => {
  const chart = { ...MIXED.chart, areas: [{ area: "floor", capacity: 2, category: "Standing" }] };
  const event = await stage.server.event({ ...MIXED, chart });
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  let arrive = () => {};
  const pressed = new Promise((done) => (arrive = () => done(undefined)));
  await shopper.page.route(/\/holds$/, async (route) => {
    const response = await route.fetch();
    await pressed;
    await route.fulfill({ response });
  });
  const plus = shopper.part("area-floor-plus");
  await plus.click();
  await shopper.reads("area-floor-free", "1 left");
  await plus.click();
  arrive();
  await shopper.holds("floor", "floor");
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
    const plus = document.querySelector('[data-part="area-floor-plus"]');
    plus.click();
    plus.click();
  });
  await shopper.reads("refusal", /Only 1 place left/);
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
  await shopper.reads("refusal", /At most 2/);
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
  await shopper.reads("sale-note", /The sale opens on .*, in \d+:\d\d/);
  // Nothing looks for sale: neither the seats nor what chooses them.
  await shopper.part("best-together").and(shopper.page.locator(":disabled")).waitFor();
  assert.equal((await shopper.state()).open, false);
  const seat = shopper.page.locator('[data-seat="A-1"][aria-label$="not on sale"]');
  await seat.waitFor({ state: "attached" });
  await shopper.press("A-1");
  assert.equal((await shopper.state()).refusal, "not_on_sale");
});

test("on a phone the label of a seat with long names shows all of them, and the price", async (t) => {
  const category = "Orchestra".repeat(9);
  const zones = ["l", "r"].map((zone, z) => ({
    zone,
    name: "Upper Circle on the Side of the River, with Restricted Legroom",
    rows: [{ row: "A", seats: [1, 2, 3].map((x) => ({ seat: `${zone}-A-${x}`, category, x: x + z * 6, y: 0 })) }],
  }));
  const event = await stage.server.event({ chart: { format: "soldonce", zones }, prices: { [category]: 4500 } });
  const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
  const shopper = await stage.shopper(t, phone);
  await shopper.visit(event);
  const { x, y } = await shopper.pointOf("l-A-2");
  await shopper.page.touchscreen.tap(x, y);
  await shopper.reads("tip", /Legroom · Orchestra.*€45\.00/);
  const [tip, map, wide] = await shopper.page.evaluate(() => {
    const box = (/** @type {string} */ id) => document.querySelector(`[data-part="${id}"]`).getBoundingClientRect().toJSON();
    return [box("tip"), box("seat-map"), document.documentElement.scrollWidth - innerWidth];
  });
  assert.ok(tip.left >= map.left && tip.right <= map.right, JSON.stringify([tip, map]));
  assert.equal(wide, 0);
});
