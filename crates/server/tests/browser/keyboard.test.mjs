// Without a mouse: a purchase by keyboard alone, and one by touch on a phone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "./stage.mjs";

const stage = Stage.set();
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

test("a purchase by keyboard alone, from the list to the booking", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  const { keyboard } = shopper.page;
  const tabTo = async (/** @type {string} */ target) => {
    for (let k = 0; k < 60; k += 1) {
      await keyboard.press("Tab");
      const there = (/** @type {string} */ css) => document.activeElement?.matches(css);
      if (await shopper.page.evaluate(there, target)) return;
    }
    assert.fail(`Tab does not lead to ${target}`);
  };
  await shopper.page.goto("/");
  await shopper.part("event-list").waitFor();
  await tabTo(`[data-event="${event}"]`);
  await keyboard.press("Enter");
  await shopper.live(event);
  await tabTo("[data-seat]");
  for (const key of ["ArrowRight", "ArrowDown", "Enter", "ArrowRight", "Enter"]) {
    await keyboard.press(key);
  }
  await shopper.holds("B-2", "B-3");
  const label = "Row B seat 3, Standard, 45.00 EUR, held by you";
  await shopper.until((wanted) => document.activeElement?.ariaLabel === wanted, label);
  await shopper.part("confirm").and(shopper.page.locator(":enabled")).waitFor();
  await tabTo('[data-part="confirm"]');
  await keyboard.press("Enter");
  await shopper.booking();
  await shopper.until(() => document.activeElement?.tagName === "H1");
});

test("the focus is never lost: a button that waits keeps it, one that goes leaves it to its card", async (t) => {
  const chart = {
    format: "seats",
    seats: ["A-1", "A-2", "A-3"].map((seat) => ({ seat, category: "Standard" })),
    areas: [{ area: "floor", capacity: 2, category: "Standard" }],
  };
  const event = await stage.server.event({ chart }, { units_per_hold_max: 3 });
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  const { keyboard } = shopper.page;
  const press = async (/** @type {string} */ id, times = 1) => {
    await shopper.part(id).focus();
    for (let k = 0; k < times; k += 1) await keyboard.press("Enter");
  };
  const has = (/** @type {string} */ css) => shopper.until((css) => document.activeElement?.matches(css), css);
  await press("area-floor-plus", 2);
  await shopper.holds("floor", "floor");
  // Beyond the last place of the area.
  await shopper.page.locator('[data-part="area-floor-plus"][aria-disabled="true"]').waitFor();
  await press("area-floor-plus", 2);
  await has('[data-part="area-floor-plus"]');
  await press("extend");
  await shopper.settled();
  await has('[data-part="extend"]');
  await press("best-together");
  await shopper.until(() => window.__soldonce.state().hold?.units.every(({ seat }) => seat));
  await shopper.settled();
  await has('[data-part="best-together"]');
  // A button adds no more than the feed says is free: the places are back first.
  await shopper.page.locator('[data-part="area-floor-plus"][aria-disabled="false"]').waitFor();
  await press("area-floor-plus");
  await shopper.reads("area-floor-free", "1 left");
  await shopper.settled();
  await press("area-floor-plus");
  await shopper.part("refusal").waitFor();
  await press("dismiss");
  await has(".hold h2");
  await shopper.settled();
  await press("release");
  await shopper.until(() => !window.__soldonce.state().hold);
  await has(".hold h2");
});

test("on a zoomed phone the letters of rows stay in sight", async (t) => {
  const chart = { format: "grid", rows: 10, seats_per_row: 40, category: "Standard" };
  const event = await stage.server.event({ chart });
  const shopper = await stage.shopper(t, PHONE);
  await shopper.visit(event);
  assert.deepEqual((await shopper.state()).pinned, []);
  // The middle of the hall, as near as a finger needs it.
  await shopper.pointOf("E-20");
  await shopper.until(() => window.__soldonce.state().pinned.includes("E"));
});

test("on a narrow phone sum and time of a large hold stand apart", async (t) => {
  const event = await stage.server.event({ prices: { Standard: 123_450 } });
  const shopper = await stage.shopper(t, { ...PHONE, viewport: { width: 360, height: 740 } });
  await shopper.visit(event);
  for (let k = 0; k < 8; k += 1) await shopper.part("best-plus").click();
  await shopper.part("best-together").click();
  await shopper.until(() => window.__soldonce.state().hold?.units.length === 10);
  await shopper.page.evaluate(() => scrollTo(0, 0));
  await shopper.reads("phone-bar", /10 seats · €12,345\.00[^]*\d:\d\d/);
  const { sum, go, bar } = await shopper.page.evaluate(() => {
    const bar = document.querySelector('[data-part="phone-bar"]');
    const box = (/** @type {Element} */ part) => part.getBoundingClientRect().toJSON();
    return { sum: box(bar.firstElementChild), go: box(bar.lastElementChild), bar: box(bar) };
  });
  assert.ok(sum.right <= go.left && go.right <= bar.right, JSON.stringify({ sum, go, bar }));
});

test("a phone on its side keeps the map usable", async (t) => {
  const event = await stage.server.event();
  const landscape = { ...PHONE, viewport: { width: 740, height: 360 } };
  const shopper = await stage.shopper(t, landscape);
  await shopper.visit(event);
  const seen = await shopper.page.evaluate(() => {
    const { top, bottom } = document.querySelector('[data-part="seat-map"]').getBoundingClientRect();
    return Math.min(bottom, innerHeight) - top;
  });
  assert.ok(seen >= 240, `${seen} pixels of the map are in sight`);
});

test("on a phone: nothing is cut off, a tap holds, the bar leads to the confirm", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t, PHONE);
  await shopper.page.goto("/");
  await shopper.part("event-list").waitFor();
  const wide = () => document.documentElement.scrollWidth - innerWidth;
  assert.equal(await shopper.page.evaluate(wide), 0);
  await shopper.visit(event);
  assert.equal(await shopper.page.evaluate(wide), 0);
  const point = await shopper.pointOf("B-5");
  await shopper.page.touchscreen.tap(point.x, point.y);
  await shopper.holds("B-5");
  await shopper.reads("phone-bar", /1 seat · €45\.00/);
  await shopper.part("phone-bar").tap();
  await shopper.part("phone-bar").waitFor({ state: "hidden" });
  await shopper.part("confirm").tap();
  await shopper.booking();
  assert.equal(await shopper.page.evaluate(wide), 0);
});
