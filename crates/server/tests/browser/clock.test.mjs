// The time on the page is the server's: in a quiet hall, behind a cache, with a wrong clock.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Middleman } from "./proxy.mjs";
import { Stage } from "./stage.mjs";

const stage = Stage.set();
const TEN_MINUTES_MS = 600_000;
// The server and this test read the same clock; a reading of milliseconds is rounded.
const ROUNDED_MS = 2;

/** The page's idea of the server's time is right, as exactly as it could be learnt. */
async function tellsTheTime(shopper) {
  const before = Date.now();
  const { now, spread } = await shopper.page.evaluate(() => window.__soldonce.time());
  const after = Date.now();
  const said = `${now - before} .. ${now - after} ms off, learnt within ${spread} ms`;
  assert.ok(now >= before - spread - ROUNDED_MS && now <= after + spread + ROUNDED_MS, said);
}

/** Waits until a countdown on the page shows what is left. @param {string} part @param {string} end */
function countsDownTo(shopper, part, end) {
  return shopper.until(
    ([id, until]) => {
      const text = document.querySelector(`[data-part="${id}"]`).textContent;
      const [, minutes, seconds] = /(\d+):(\d\d)(?!.*:\d\d)/.exec(text) ?? [];
      return Math.abs(Number(minutes) * 60 + Number(seconds) - (until - Date.now()) / 1000) < 1.5;
    },
    [part, Date.parse(end)],
  );
}

/** Makes the page ask for the seats again, as it does of its own accord in a quiet hall. */
async function asksAgain({ page }) {
  const answered = page.waitForResponse(/\/seats$/);
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await answered;
  // The page takes an answer in tasks of its own, begun before this one.
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 0)));
}

/** Lets the page's machine sleep, on a clock that does not count it. */
function maySleep(shopper) {
  shopper.foreseeNoServer();
  return shopper.page.addInitScript(() => {
    const now = performance.now.bind(performance);
    let [sleptAt, lost] = [NaN, 0];
    performance.now = () => (Number.isNaN(sleptAt) ? now() : sleptAt) - lost;
    window.sleeps = () => (sleptAt = now());
    window.sleptFor = () => now() - sleptAt;
    window.wakes = () => {
      lost += now() - sleptAt;
      sleptAt = NaN;
    };
  });
}

/** Sleeps for longer than a countdown may be off. */
async function sleep(shopper) {
  await shopper.page.evaluate(() => window.sleeps());
  await shopper.until(() => window.sleptFor() > 4000);
  await shopper.page.evaluate(() => window.wakes());
}

test("in a quiet hall the countdown keeps to the server's time", async (t) => {
  const event = await stage.server.event();
  // The first answers are slow, so that later ones look more exact.
  const proxy = await Middleman.before(stage.server);
  proxy.latency = 50;
  const shopper = await stage.shopper(t, { baseURL: proxy.url });
  await shopper.visit(event);
  await shopper.press("A-1");
  await tellsTheTime(shopper);
  proxy.latency = 0;
  await asksAgain(shopper);
  // Quiet until that answer is seconds old.
  await shopper.until(() => /^(?!10:|9:5[6-9])\d+:\d\d/.test(document.querySelector('[data-part="countdown"]').textContent));
  await asksAgain(shopper);
  await tellsTheTime(shopper);
  const { hold } = await shopper.state();
  await countsDownTo(shopper, "countdown", hold.expires_at);
});

test("behind a cache that keeps everything the countdowns are right all the same", async (t) => {
  const opens = new Date(Date.now() + TEN_MINUTES_MS).toISOString();
  const event = await stage.server.event({}, { sale_opens_at: opens });
  const proxy = await Middleman.before(stage.server, { keeps: true });
  const first = await stage.shopper(t, { baseURL: proxy.url });
  await first.visit(event);
  // Quiet until what the cache has is seconds old.
  await first.until(() => /in (?!10:|9:5[6-9])\d+:\d\d/.test(document.querySelector('[data-part="sale-note"]').textContent));
  await asksAgain(first);
  await tellsTheTime(first);

  const second = await stage.shopper(t, { baseURL: proxy.url });
  await second.visit(event);
  assert.ok(proxy.again >= 2, `${proxy.again} answers out of the cache`);
  await tellsTheTime(second);
  await countsDownTo(second, "sale-note", opens);
});

test("after a sleep that its clock did not count, a page that stayed visible learns the time anew", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await maySleep(shopper);
  await shopper.visit(event);
  await shopper.press("A-1");
  const { hold } = await shopper.state();
  await countsDownTo(shopper, "countdown", hold.expires_at);
  const stands = (/** @type {string} */ state) =>
    shopper.page.locator(`[data-part="connection-state"][data-state="${state}"]`).waitFor();
  await stands("live");
  await shopper.page.context().setOffline(true);
  await stands("lost");
  await sleep(shopper);
  await shopper.page.context().setOffline(false);
  await stands("live");
  await countsDownTo(shopper, "countdown", hold.expires_at);
  // "My bookings" has no connection that breaks: it hears of the network, or of being shown again.
  await shopper.part("mine-link").click();
  await shopper.part("mine-time").waitFor();
  for (const type of ["online", "visibilitychange"]) {
    await sleep(shopper);
    await shopper.page.evaluate((type) => (type === "online" ? window : document).dispatchEvent(new Event(type)), type);
    await countsDownTo(shopper, "mine-time", hold.expires_at);
  }
});

for (const off of [-TEN_MINUTES_MS, TEN_MINUTES_MS]) {
  test(`a shopper's clock that is ${off / 60_000} minutes off changes nothing`, async (t) => {
    const event = await stage.server.event();
    const shopper = await stage.shopper(t);
    await shopper.page.addInitScript((ms) => {
      const { Date: Right } = window;
      window.Date = new Proxy(Right, {
        construct: (_, given) => Reflect.construct(Right, given.length === 0 ? [Right.now() + ms] : given),
        get: (_, name) => (name === "now" ? () => Right.now() + ms : Reflect.get(Right, name)),
      });
    }, off);
    await shopper.visit(event);
    await shopper.press("A-1");
    await tellsTheTime(shopper);
    await shopper.reads("countdown", /^(9:\d\d|10:00)$/);
    await shopper.page.reload();
    await shopper.live(event);
    await shopper.holds("A-1");
    await tellsTheTime(shopper);
  });
}
