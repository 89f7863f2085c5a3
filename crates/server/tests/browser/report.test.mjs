// The page that `lab race --report` writes: a file of its own, which a person may put into a talk.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { named } from "./server.mjs";
import { Browser, Shopper } from "./shopper.mjs";

const STRATEGIES = ["naive", "pessimistic", "queue"];
const SIZES = { desk: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
const file = join(named("SOLDONCE_SCRATCH"), "race.html");
/** @type {Browser} */ let browser;

before(async () => {
  const race = ["lab", "race", "--strategies", STRATEGIES.join(), "--report", file];
  const few = ["--buyers", "5,20", "--seats", "1", "--rounds", "3"];
  await promisify(execFile)(named("SOLDONCE_PROGRAM"), [...race, ...few]);
  browser = await Browser.launch();
});
after(() => browser?.close());

/** @param {import("node:test").TestContext} t @param {object} [options] */
async function opened(t, options = {}) {
  const context = await browser.launched.newContext({ viewport: SIZES.desk, ...options });
  t.after(() => context.close());
  const reader = await Shopper.in(t, context);
  /** @type {string[]} */ const asked = [];
  reader.page.on("request", (request) => asked.push(request.url()));
  await reader.page.goto(pathToFileURL(file).href);
  assert.deepEqual(asked, [pathToFileURL(file).href], "it asks for nothing");
  return reader.page;
}

test("every strategy has its card, its line in each plot, and its row", async (t) => {
  const page = await opened(t);
  for (const name of STRATEGIES) {
    const card = page.locator(`article.card.${name}`);
    assert.ok((await card.innerText()).length > 200, `${name} is explained`);
    for (const more of await card.locator("summary").all()) await more.click();
    assert.ok(await card.locator("pre").first().isVisible(), `${name} shows its code`);
  }
  const plots = page.locator('figure svg[role="img"]:has(polyline)');
  assert.equal(await plots.count(), 2, "rate and latency");
  for (const plot of await plots.all()) {
    assert.equal(await plot.locator("polyline").count(), STRATEGIES.length);
    const boxes = await plot.locator("polyline").evaluateAll((lines) =>
      lines.map((line) => line.getBoundingClientRect().toJSON()),
    );
    for (const { width } of boxes) assert.ok(width > 50, "a line that can be seen");
  }
  const rows = page.locator("table:not(.small) tbody tr");
  for (const name of STRATEGIES) assert.equal(await rows.filter({ hasText: name }).count(), 2);
});

for (const [size, viewport] of Object.entries(SIZES)) {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    test(`nothing is cut off: ${size}, ${colorScheme}`, async (t) => {
      const page = await opened(t, { viewport, colorScheme });
      const [wide, seen] = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        return [scrollWidth, clientWidth];
      });
      assert.ok(wide <= seen, `${wide} wide, ${seen} are seen`);
      const name = `race-report-${size}-${colorScheme}.png`;
      await page.screenshot({ path: join(named("SOLDONCE_SCREENSHOTS"), name), fullPage: true });
    });
  }
}
