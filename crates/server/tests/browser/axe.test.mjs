// What axe finds, in every state of the page, in light and dark, on a desk and on a phone; and the
// page with letters of twice the size.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { suite, test } from "node:test";
import { named } from "./server.mjs";
import { meanwhile } from "./shopper.mjs";
import { Stage } from "./stage.mjs";

const stage = Stage.set(["demo"]);
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const SHORT = { hold_ttl_ms: 3000, hold_max_ms: 60_000, payment_window_ms: 1000 };
/** Time enough to begin a payment and to choose the card that waits for the end of it. */
const LATE = { hold_ttl_ms: 30_000, hold_max_ms: 60_000, payment_window_ms: 30_000, late_payment: "refund" };
const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
/** @type {Record<string, import("playwright-core").BrowserContextOptions>} */ const LOOKS = {
  "desk, light": { colorScheme: "light" },
  "desk, dark": { colorScheme: "dark" },
  "phone, light": { ...PHONE, colorScheme: "light" },
  "phone, dark": { ...PHONE, colorScheme: "dark" },
};
const MIXED = {
  chart: {
    format: "seats",
    seats: ["A-1", "A-2", "B-1", "B-2", "B-3"].map((seat) => ({
      seat,
      category: seat.startsWith("A") ? "Premium" : "Standard",
    })),
    areas: [{ area: "floor", capacity: 5, category: "Standing" }],
  },
  prices: { Premium: 9000, Standard: 4500, Standing: 2000 },
};

/** Fails with what axe finds wrong with the page as it stands. */
async function clean(shopper, state) {
  const { page } = shopper;
  await page.evaluate(await readFile(AXE, "utf8"));
  const found = await page.evaluate(async () => {
    // Colours that are on their way to others are judged where they end.
    for (const animation of document.getAnimations()) {
      if (animation.effect?.getComputedTiming().iterations !== Infinity) animation.finish();
    }
    const { violations } = await window.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)}: ${failureSummary}`),
    );
  });
  assert.deepEqual(found, [], state);
}

for (const [look, options] of Object.entries(LOOKS)) {
  test(`${look}: every state of the page is clean`, async (t) => {
    const shopper = await stage.shopper(t, options);
    const { page } = shopper;
    await page.goto("/");
    await shopper.part("event-card").first().waitFor();
    await clean(shopper, "list");
    await page.goto("/#/mine");
    await shopper.part("nothing-own").waitFor();
    await clean(shopper, "nothing of one's own");

    const event = await stage.server.event(MIXED);
    await shopper.visit(event);
    await clean(shopper, "hall");
    const rival = await stage.server.rival();
    await rival.hold(event, "A-2");
    await shopper.seatIs("A-2", "held");
    await shopper.press("A-2");
    await clean(shopper, "a seat of another shopper");
    await shopper.part("best-plus").click();
    await shopper.part("best-together").click();
    await shopper.until(() => window.__soldonce.state().hold);
    await shopper.settled();
    await clean(shopper, "hold");
    await shopper.part("area-floor-plus").click();
    await shopper.settled();
    await page.goto("/#/mine");
    await shopper.part("mine-hold").waitFor();
    await clean(shopper, "a hold of one's own");
    await shopper.visit(event);
    await shopper.begin();
    await clean(shopper, "cards");
    await shopper.part("card-declined").click();
    await shopper.stage("again");
    await clean(shopper, "declined");
    await shopper.part("card-challenged").and(page.locator(":enabled")).click();
    await shopper.stage("bank");
    await page.locator('[data-part="bank-yes"]:enabled').waitFor();
    await clean(shopper, "bank");
    await shopper.part("bank-yes").click();
    await shopper.bookingIs("confirmed");
    await clean(shopper, "booking");
    await page.locator(".cancel-line").first().click();
    await clean(shopper, "question");
    await shopper.part("cancel-yes").click();
    await shopper.bookingIs("partly_cancelled");
    await clean(shopper, "partly cancelled");
    await page.goto("/#/mine");
    await shopper.part("mine-booking").waitFor();
    await clean(shopper, "a booking of one's own");

    const brief = await stage.server.event({}, SHORT);
    await shopper.visit(brief);
    await shopper.press("A-1");
    await shopper.part("ended").waitFor();
    await clean(shopper, "ended");
    shopper.foresee(404);
    await page.goto("/#/events/none");
    await shopper.part("failure").waitFor();
    await clean(shopper, "failure");
    const opens = new Date(Date.now() + 3_600_000).toISOString();
    await shopper.visit(await stage.server.event({}, { sale_opens_at: opens }));
    await shopper.part("sale-note").waitFor();
    await clean(shopper, "not on sale yet");
    await page.goto("/docs");
    await page.locator("details").first().waitFor();
    await clean(shopper, "docs");
  });
}

// At once: each waits for a payment that comes late.
suite("what goes wrong", { concurrency: true }, () => {
  for (const [look, options] of Object.entries(LOOKS)) {
    test(`${look}: each state is clean`, async (t) => {
      const shopper = await stage.shopper(t, options);
      const { page } = shopper;
      const contested = await stage.server.event();
      const rival = await stage.server.rival();
      shopper.foresee(409);
      await shopper.visit(contested);
      let taken = false;
      await meanwhile(shopper, "POST", /\/holds$/, async () => {
        if (!taken) await rival.hold(contested, "B-5");
        taken = true;
      });
      await shopper.press("B-5");
      await shopper.part("refusal-alternative").waitFor();
      await clean(shopper, "refused, with an alternative");
      await shopper.part("refusal-alternative").click();
      await shopper.settled();
      const payment = await shopper.pay("slow");
      await shopper.stage("silent");
      await clean(shopper, "a silent bank");
      await shopper.bankSays(payment, true);
      await shopper.bookingIs("confirmed");

      const late = await stage.server.event({}, LATE);
      await shopper.visit(late);
      await shopper.press("A-1");
      await shopper.pay("late");
      await shopper.bookingIs("refunded");
      await clean(shopper, "late, and sent back");

      const small = { format: "grid", rows: 1, seats_per_row: 2, category: "Standard" };
      const full = await stage.server.event({ chart: small, name: `Full ${look}` });
      const units = [{ seat: "A-1" }, { seat: "A-2" }];
      await stage.server.done("POST", `/v1/events/${full}/sales`, { units, holder: "box" });
      await shopper.visit(full);
      await shopper.page.getByText(/sold out/i).first().waitFor();
      await clean(shopper, "sold out");
      await page.goto("/");
      await shopper.part("event-card").getByText(/sold out/i).first().waitFor();
      await clean(shopper, "a list with what is sold out");

      shopper.foreseeNoServer();
      await shopper.visit(contested);
      await page.context().setOffline(true);
      await page.locator('[data-part="connection-state"][data-state="lost"]').waitFor();
      await clean(shopper, "a lost connection");
      const { x, y } = await shopper.pointOf("D-1");
      await page.mouse.click(x, y);
      await page.locator('[data-part="connection-state"][data-state="unsent"]').waitFor();
      await clean(shopper, "a choice that was not sent");
      await page.context().setOffline(false);
      await page.locator('[data-part="connection-state"][data-state="live"]').waitFor();
      await shopper.settled();
    });
  }
});

for (const [size, options] of Object.entries({ desk: {}, phone: PHONE })) {
  test(`${size}: with letters of twice the size nothing is cut off, and all of it can be used`, async (t) => {
    const shopper = await stage.shopper(t, options);
    const { page } = shopper;
    const large = async () => {
      await page.evaluate(() => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync("html { font-size: 200%; }");
        document.adoptedStyleSheets = [sheet];
      });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} pixels beyond the edge of ${page.url()}`);
    };
    await page.goto("/");
    await shopper.part("event-card").first().waitFor();
    await large();
    const event = await stage.server.event();
    await shopper.visit(event);
    await large();
    await shopper.press("A-1", "A-2");
    await shopper.holds("A-1", "A-2");
    await large();
    const inside = await page.evaluate(() => {
      const [ring, time] = [".clock", ".clock .time"].map((css) => document.querySelector(css).getBoundingClientRect());
      return time.width < ring.width && time.height < ring.height;
    });
    assert.ok(inside, "the time stands in its ring");
    // Small print is smaller than the price, at every size of both.
    const [small, price] = await page.evaluate(() =>
      [".lines small", ".lines .price"].map((css) => parseFloat(getComputedStyle(document.querySelector(css)).fontSize)),
    );
    assert.ok(small < price, `${small} and ${price}`);
    await page.screenshot({ path: join(named("SOLDONCE_SCREENSHOTS"), `large-${size}.png`) });
    await shopper.buy();
    await large();
  });
}
