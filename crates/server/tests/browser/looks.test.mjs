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
  const canvas = document.querySelector('[data-testid="seat-map"]');
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let k = 0; k < data.length; k += 4) {
    seen.add((data[k] << 16) | (data[k + 1] << 8) | data[k + 2]);
  }
  return seen.size;
};

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

test("the chosen theme outlives a reload, whatever the system prefers", async (t) => {
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
