// Dark and light, desk and phone: screenshots for people to look at, and what a machine can say of
// them. They are kept in the folder that SOLDONCE_SCREENSHOTS names.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { named } from "./server.mjs";
import { Shopper } from "./shopper.mjs";
import { Stage } from "./stage.mjs";

const stage = Stage.set(["demo"]);
const SIZES = {
  desk: { viewport: { width: 1366, height: 860 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
};

/** How bright something is, 0 to 255, from its computed background. */
const brightness = (/** @type {string} */ css) => {
  const colour = getComputedStyle(document.querySelector(css)).backgroundColor;
  const parts = (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  return parts.reduce((sum, part) => sum + part, 0) / 3;
};

/** How many colours the map is drawn in: a blank canvas has one. */
const colours = () => {
  const canvas = document.querySelector('[data-part="seat-map"]');
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let k = 0; k < data.length; k += 4) {
    seen.add((data[k] << 16) | (data[k + 1] << 8) | data[k + 2]);
  }
  return seen.size;
};

/** How light a seat is on the map, in its middle and at its edge. */
async function lightness(shopper, seat) {
  const { x, y } = await shopper.pointOf(seat);
  // Drawn, and no flash of the change about it any more.
  await shopper.until(() => window.__soldonce.atRest());
  return shopper.page.evaluate(([x, y]) => {
    const canvas = document.querySelector('[data-part="seat-map"]');
    const box = canvas.getBoundingClientRect();
    const ratio = canvas.width / box.width;
    // A copy, because the map itself is not made for being read.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const at = (/** @type {number} */ dx) => {
      const { data } = copy.getImageData((x + dx - box.left) * ratio, (y - box.top) * ratio, 1, 1);
      return 0.21 * data[0] + 0.72 * data[1] + 0.07 * data[2];
    };
    const half = window.__soldonce.seatSide() / 2;
    return { middle: at(half * 0.3), edge: at(half * 0.82) };
  }, [x, y]);
}

for (const [size, options] of Object.entries(SIZES)) {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    test(`${size}, ${colorScheme}: list, hall, hold and booking`, async (t) => {
      const shopper = await stage.shopper(t, { ...options, colorScheme });
      const { page } = shopper;
      const shot = (/** @type {string} */ name) => {
        const file = `${name}-${size}-${colorScheme}.png`;
        return page.screenshot({ path: join(named("SOLDONCE_SCREENSHOTS"), file) });
      };
      await page.goto("/");
      await shopper.part("event-card").first().waitFor();
      await shot("list");
      await shopper.visit("hamlet");
      await shopper.part("best-together").click();
      await shopper.until(() => window.__soldonce.state().hold);
      await shopper.settled();
      await shot("hall");
      const bright = await page.evaluate(brightness, "body");
      assert.ok(colorScheme === "light" ? bright > 200 : bright < 60, `brightness ${bright}`);
      await shopper.until(() => window.__soldonce.atRest());
      assert.ok((await page.evaluate(colours)) > 20);
      await shopper.part("pay").click();
      await shopper.part("card-good").waitFor();
      await shot("pay");
      await shopper.part("card-good").click();
      await shopper.booking();
      await shot("booking");
    });
  }
}

/** A middle block between two wings up to the edges, and a place to stand that is small on a phone. */
function winged() {
  const zone = (/** @type {string} */ zone, /** @type {string} */ name, /** @type {number} */ left, /** @type {number} */ seats) => ({
    zone,
    name,
    rows: ["A", "B", "C", "D", "E", "F", "G", "H", "J", "K"].map((row, y) => ({
      row,
      seats: Array.from({ length: seats }, (_, k) => ({
        seat: `${zone}-${row}-${k + 1}`,
        category: "Standard",
        x: left + k,
        y: y * 1.1,
      })),
    })),
  });
  const standing = { area: "bar", label: "Standing by the bar", capacity: 20, category: "Standard" };
  return {
    format: "soldonce",
    zones: [zone("l", "Rang links", 0, 5), zone("m", "Parkett", 8, 24), zone("r", "Rang rechts", 35, 5)],
    areas: [{ ...standing, x: 17, y: 12, width: 6, height: 2.5 }],
  };
}

const HALLS = { phone: SIZES.phone, desk: { viewport: { width: 1440, height: 900 } } };
for (const [size, options] of Object.entries(HALLS)) {
  test(`${size}: the whole hall is seen, each part with its name, and nothing lies upon a seat`, async (t) => {
    const event = await stage.server.event({ chart: winged() });
    const shopper = await stage.shopper(t, options);
    await shopper.visit(event);
    await shopper.until(() => window.__soldonce.atRest());
    await shopper.page.screenshot({ path: join(named("SOLDONCE_SCREENSHOTS"), `wings-${size}.png`) });
    const { covered, names, width } = await shopper.page.evaluate(() => {
      const { seats, names } = window.__soldonce.drawn();
      const covered = seats.filter(({ x, y }) => !document.elementFromPoint(x, y)?.matches('[data-part="seat-map"]'));
      const { width } = document.querySelector('[data-part="seat-map"]').getBoundingClientRect();
      return { covered, names, width };
    });
    assert.deepEqual(covered, []);
    // From near the names are drawn above their zones.
    if (size === "desk") return assert.deepEqual(names, []);
    const texts = names.map(({ text }) => text).sort();
    assert.deepEqual(texts, ["Parkett", "Rang links", "Rang rechts", "Standing by the bar"]);
    for (const [k, one] of names.entries()) {
      assert.ok(one.left >= 0 && one.left + one.width <= width, JSON.stringify(one));
      for (const other of names.slice(k + 1)) {
        const apart =
          one.left + one.width <= other.left ||
          other.left + other.width <= one.left ||
          one.top + one.height <= other.top ||
          other.top + other.height <= one.top;
        assert.ok(apart, JSON.stringify([one, other]));
      }
    }
  });
}

test("held and sold are told apart at a glance, also without colours", async (t) => {
  const event = await stage.server.event();
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    const shopper = await stage.shopper(t, { colorScheme });
    await shopper.visit(event);
    const looks = {};
    for (const [state, seats] of Object.entries({ held: ["B-2", "B-3"], sold: ["C-2", "C-3"] })) {
      const units = seats.map((seat) => ({ seat }));
      if (state === "sold") await stage.server.ask("POST", `/v1/events/${event}/sales`, { units, holder: "box" });
      else await stage.server.ask("POST", `/v1/events/${event}/holds`, { units, holder: "other" });
      await shopper.seatIs(seats[0], state);
      looks[state] = await lightness(shopper, seats[0]);
    }
    // What is held has an edge, what is sold has none.
    const { held, sold } = looks;
    assert.ok(Math.abs(held.edge - held.middle) > 60, JSON.stringify(looks));
    assert.ok(Math.abs(held.edge - sold.edge) > 40, JSON.stringify(looks));
  }
});

test("the description of the API fits a phone, with and without a slash", async (t) => {
  const { page } = await stage.shopper(t, SIZES.phone);
  for (const path of ["/docs", "/docs/"]) {
    await page.goto(path);
    await page.locator("details").first().waitFor();
    await page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  }
});

test("the chosen theme outlives a reload and the system's preference", async (t) => {
  const shopper = await stage.shopper(t, { colorScheme: "light" });
  await shopper.visit("hamlet");
  const toggle = shopper.part("theme-toggle");
  await toggle.click();
  const chosen = await shopper.page.evaluate(brightness, "body");
  await shopper.page.reload();
  await shopper.live("hamlet");
  assert.equal(await shopper.page.evaluate(brightness, "body"), chosen);
  assert.ok(chosen < 60, `brightness ${chosen}`);
});

test("an error or a refused style would fail any of these tests", async (t) => {
  const { page } = await stage.shopper(t);
  const shopper = new Shopper(await page.context().newPage());
  await shopper.watch();
  await shopper.page.goto("/");
  shopper.judge();
  const told = shopper.page.waitForEvent("console", (line) => line.text().includes("style-src"));
  await shopper.page.evaluate(() => document.body.insertAdjacentHTML("beforeend", "<p style='top:0'>"));
  await told;
  assert.throws(() => shopper.judge(), /the browser complained/);

  shopper.complaints.length = 0;
  const thrown = shopper.page.waitForEvent("pageerror");
  await shopper.page.evaluate(() => {
    setTimeout(() => {
      throw new Error("planted");
    }, 0);
  });
  await thrown;
  assert.throws(() => shopper.judge(), /the browser complained/);
});
