// A phone on a slow network ("Slow 4G" of Chromium's tools, a processor four times as slow): how long
// it takes until there are seats to choose from, and how smoothly a large hall moves under a finger. Figures are
// told; goals of time are asserted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Shopper } from "../shopper.mjs";
import { Stage } from "../stage.mjs";

const stage = Stage.set();
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const NETWORK = { offline: false, latency: 562.5, downloadThroughput: 188_744, uploadThroughput: 86_400 };
const PROCESSOR = { rate: 4 };
const ROUNDS = 3;
/** Frames a second. The goals are 60 and 50; half of them is drawn on a busy machine without a graphics card, too. */
const SMOOTH = { pan: 30, pinch: 25 };
const GOALS = [
  { seats: 5_000, rows: 50, cold: 5_000, warm: 3_000 },
  { seats: 50_000, rows: 200, cold: 6_000, warm: 6_000 },
];

/** Milliseconds from the navigation until the page knows each seat's state and has drawn. */
async function opened(/** @type {import("../shopper.mjs").Shopper} */ shopper, /** @type {string} */ event) {
  const { page } = shopper;
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.emulateNetworkConditions", NETWORK);
  await devtools.send("Emulation.setCPUThrottlingRate", PROCESSOR);
  /** @type {Record<string, number>} */ const bytes = { requests: 0, received: 0 };
  devtools.on("Network.requestWillBeSent", () => (bytes.requests += 1));
  devtools.on("Network.dataReceived", ({ encodedDataLength }) => (bytes.received += encodedDataLength));
  await page.addInitScript(() => {
    const look = () => {
      const state = window.__soldonce?.state();
      if (!(state?.seq >= 0)) return requestAnimationFrame(look);
      // The frame after that shows them.
      requestAnimationFrame(() => requestAnimationFrame(() => (window.openedAt = performance.now())));
    };
    requestAnimationFrame(look);
  });
  await page.goto(`/#/events/${event}`, { waitUntil: "commit" });
  const ms = Math.round(await shopper.until(() => window.openedAt));
  const phases = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .filter(({ name }) => name.includes("/v1/"))
      .map(({ name, startTime, responseEnd }) => `${new URL(name).pathname.split("/").pop()} ${startTime.toFixed()}-${responseEnd.toFixed()}`),
  );
  await devtools.detach();
  await shopper.live(event);
  return { ms, ...bytes, phases: phases.join(", ") };
}

for (const { seats, rows, cold, warm } of GOALS) {
  test(`${seats} seats on a slow phone`, async (t) => {
    const chart = { format: "grid", rows, seats_per_row: seats / rows, category: "Standard" };
    const event = await stage.server.event({ chart });
    const times = { cold: [], warm: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      const first = await stage.shopper(t, PHONE);
      for (const look of /** @type {const} */ (["cold", "warm"])) {
        const shopper = look === "cold" ? first : await Shopper.in(t, first.page.context());
        const told = await opened(shopper, event);
        times[look].push(told.ms);
        t.diagnostic(`${seats} seats, ${look}: ${JSON.stringify(told)}`);
      }
    }
    // Of several rounds the quickest: what else runs on the machine only adds.
    const [first, again] = [Math.min(...times.cold), Math.min(...times.warm)];
    assert.ok(first <= cold, `the first time ${first} ms`);
    assert.ok(again <= warm, `the second time ${again} ms`);
  });
}

/** Frames a second while fingers on the map move once in each. @param {number} fingers */
async function moved(fingers) {
  const canvas = document.querySelector('[data-part="seat-map"]');
  const box = canvas.getBoundingClientRect();
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  canvas.setPointerCapture = () => {};
  const point = (type, finger, away) => {
    const clientX = box.left + box.width / 2 + (finger === 0 ? away : -away);
    const place = { clientX, clientY: box.top + box.height / 2 + away / 2 };
    canvas.dispatchEvent(new PointerEvent(type, { pointerId: 10 + finger, pointerType: "touch", bubbles: true, ...place }));
  };
  const each = (type, away) => Array.from({ length: fingers }, (_, finger) => point(type, finger, away));
  each("pointerdown", 20);
  const began = await frame();
  let now = began;
  for (let step = 1; step <= 120; step += 1) {
    each("pointermove", 60 - 40 * Math.cos((step / 60) * Math.PI));
    now = await frame();
  }
  each("pointerup", 20);
  return (120 * 1000) / (now - began);
}

test("50,000 seats move smoothly on a slow phone", async (t) => {
  const chart = { format: "grid", rows: 200, seats_per_row: 250, category: "Standard" };
  const event = await stage.server.event({ chart });
  const shopper = await stage.shopper(t, PHONE);
  await shopper.visit(event);
  await shopper.pointOf("CV-125");
  const devtools = await shopper.page.context().newCDPSession(shopper.page);
  await devtools.send("Emulation.setCPUThrottlingRate", PROCESSOR);
  const most = { pan: 0, pinch: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [what, fingers] of /** @type {const} */ ([["pan", 1], ["pinch", 2]])) {
      const rate = await shopper.page.evaluate(moved, fingers);
      most[what] = Math.max(most[what], rate);
      t.diagnostic(`${what}: ${rate.toFixed(1)} frames a second`);
    }
  }
  assert.ok(most.pan >= SMOOTH.pan, `panned at ${most.pan}`);
  assert.ok(most.pinch >= SMOOTH.pinch, `pinched at ${most.pinch}`);
});
