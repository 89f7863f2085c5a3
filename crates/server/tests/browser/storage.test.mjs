// A browser that keeps nothing for the page: no cookies, no storage.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { named } from "./server.mjs";
import { Shopper } from "./shopper.mjs";
import { Stage } from "./stage.mjs";

const stage = Stage.set();

/** A browser whose user has forbidden all cookies, which forbids storage as well. */
async function forgetful(t) {
  const folder = join(named("SOLDONCE_SCRATCH"), `profile-${randomUUID()}`);
  await mkdir(join(folder, "Default"), { recursive: true });
  const preferences = { profile: { default_content_setting_values: { cookies: 2 } } };
  await writeFile(join(folder, "Default", "Preferences"), JSON.stringify(preferences));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: named("SOLDONCE_CHROMIUM"),
    baseURL: stage.server.url,
    viewport: { width: 1280, height: 800 },
    locale: "en-GB",
    timezoneId: "UTC",
  });
  t.after(() => context.close());
  return Shopper.in(t, context);
}

test("without cookies and storage the page sells, and says what it cannot do", async (t) => {
  const event = await stage.server.event();
  const shopper = await forgetful(t);
  await shopper.visit(event);
  const blocked = await shopper.page.evaluate(() => {
    try {
      return !window.localStorage || !navigator.cookieEnabled;
    } catch {
      return true;
    }
  });
  assert.ok(blocked, "this browser keeps nothing");
  await shopper.reads("forgets", /loses what you hold/);
  await shopper.part("theme-toggle").click();
  await shopper.press("B-2", "B-3");
  await shopper.holds("B-2", "B-3");
  const booking = await shopper.confirm();
  const link = await shopper.part("booking-link").getAttribute("href");
  // Only the link leads back.
  await shopper.page.goto("about:blank");
  await shopper.page.goto(link);
  assert.equal(await shopper.booking(), booking);
});

test("a browser that remembers is told nothing of the kind", async (t) => {
  const shopper = await stage.shopper(t);
  await shopper.page.goto("/");
  await shopper.part("event-list").waitFor();
  assert.ok(await shopper.part("forgets").isHidden());
});
