// Fifty thousand seats: the map opens, moves and sells. Times are told as figures; what is
// asserted are counts, with room for a slow and busy machine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Middleman } from "./proxy.mjs";
import { Stage } from "./stage.mjs";

const stage = Stage.set();
const ROWS = 200;
const SEATS_PER_ROW = 250;
const STEPS = 60;
// Work in one step that a shopper would call a standstill.
const STANDSTILL_MS = 500;

test("a hall of 50,000 seats can be moved, zoomed and bought in", async (t) => {
  const chart = {
    format: "grid",
    rows: ROWS,
    seats_per_row: SEATS_PER_ROW,
    category: "Standard",
  };
  const event = await stage.server.event({ chart });
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  assert.equal((await shopper.state()).counts.free, ROWS * SEATS_PER_ROW);
  await shopper.page.evaluate(() => window.__soldonce.resetFrames());

  // Moved once per frame, as a hand would: zooming in, dragging about, zooming out.
  await shopper.page.evaluate((steps) => {
    const canvas = document.querySelector('[data-part="seat-map"]');
    const box = canvas.getBoundingClientRect();
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const wheel = (deltaY) =>
      canvas.dispatchEvent(
        new WheelEvent("wheel", { clientX: x, clientY: y, deltaY, cancelable: true }),
      );
    const pointer = (type, dx, dy) => {
      const place = { clientX: x + dx, clientY: y + dy };
      canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, pointerType: "mouse", ...place }));
    };
    canvas.setPointerCapture = () => {};
    window.moved = (k) => {
      if (k < steps) wheel(-60);
      else if (k === steps) pointer("pointerdown", 0, 0);
      else if (k < 3 * steps) {
        const turn = ((k - steps) / steps) * Math.PI;
        pointer("pointermove", 200 * Math.sin(turn), 150 * Math.sin(2 * turn));
      } else if (k === 3 * steps) pointer("pointerup", 0, 0);
      else wheel(60);
      return new Promise((resolve) => requestAnimationFrame(() => resolve()));
    };
  }, STEPS);
  // Of the page's own thread: a machine that is busy with something else makes no standstill.
  const devtools = await shopper.page.context().newCDPSession(shopper.page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const worked = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return 1000 * metrics.find((metric) => metric.name === "TaskDuration").value;
  };
  let [standstills, last] = [0, await worked()];
  for (let k = 0; k < 4 * STEPS; k += 1) {
    await shopper.page.evaluate((k) => window.moved(k), k);
    const now = await worked();
    if (now - last > STANDSTILL_MS) standstills += 1;
    last = now;
  }
  const frames = await shopper.frames();
  t.diagnostic(`50,000 seats, moving: ${JSON.stringify({ standstills, ...frames })}`);
  assert.ok(standstills <= STEPS / 20, `${standstills} standstills`);
  assert.ok(frames.frames >= 2 * STEPS, `${frames.frames} frames drawn`);

  // Dragging chose nothing, and it sells: the very last seat, while others change elsewhere.
  const seat = `${rowName(ROWS - 1)}-${SEATS_PER_ROW}`;
  await shopper.press(seat);
  await shopper.holds(seat);
  const units = Array.from({ length: 60 }, (_, k) => ({ seat: `A-${k + 1}` }));
  await stage.server.done("POST", `/v1/events/${event}/block`, { units, reason: "press" });
  await shopper.seatIs("A-60", "blocked");
  await shopper.part("zoom-fit").click();
  await shopper.confirm();
});

test("the first frame of a large hall shows where its seats are", async (t) => {
  const chart = { format: "grid", rows: ROWS, seats_per_row: SEATS_PER_ROW, category: "Standard" };
  const event = await stage.server.event({ chart });
  const shopper = await stage.shopper(t);
  await shopper.page.addInitScript(() => {
    // What stands in the middle of the map when it was first drawn.
    window.firstFrame = new Promise((resolve) => {
      const look = () => {
        const canvas = document.querySelector('[data-part="seat-map"]');
        if (!canvas || canvas.width < 2) return requestAnimationFrame(look);
        // A copy, because the map itself is not made for being read.
        const pen = new OffscreenCanvas(1, 200).getContext("2d", { willReadFrequently: true });
        pen.drawImage(canvas, -canvas.width / 2, -canvas.height / 2);
        const pixels = pen.getImageData(0, 0, 1, 200).data;
        // An opaque canvas is black before anything is drawn.
        if (pixels[0] + pixels[1] + pixels[2] === 0) return requestAnimationFrame(look);
        const colours = new Set();
        for (let k = 0; k < pixels.length; k += 4) colours.add(`${pixels[k]},${pixels[k + 1]},${pixels[k + 2]}`);
        resolve(colours.size);
      };
      requestAnimationFrame(look);
    });
  });
  await shopper.visit(event);
  const colours = await shopper.page.evaluate(() => window.firstFrame);
  assert.ok(colours > 1, "the first frame is blank");
});

test("a chart that takes its time is waited for as long as it keeps coming", async (t) => {
  const event = await stage.server.event();
  const proxy = await Middleman.before(stage.server);
  const shopper = await stage.shopper(t, { baseURL: proxy.url });
  // Time on the page passes here alone, however slow the machine is.
  await shopper.page.clock.install({ time: 0 });
  await shopper.page.clock.pauseAt(1000);
  await shopper.page.addInitScript(() => {
    window.partsRead = 0;
    const { read } = ReadableStreamDefaultReader.prototype;
    ReadableStreamDefaultReader.prototype.read = async function () {
      const part = await read.call(this);
      window.partsRead += 1;
      return part;
    };
  });
  const slowly = proxy.slowly(/\/chart$/, 4);
  // What is asked for beside the chart has its own patience.
  const others = [/\/v1\/payments$/, /\/v1\/events\/[^/]+$/].map(async (path) => {
    const response = await shopper.page.waitForResponse(path);
    await response.finished();
  });
  await shopper.page.goto(`/#/events/${event}`);
  await Promise.all(others);
  for (let part = 1; part <= 4; part += 1) {
    slowly.next();
    await shopper.until((read) => window.partsRead >= read, part);
    await shopper.page.clock.fastForward(10_000);
  }
  await shopper.part("seat-map").waitFor();
  assert.equal(slowly.requests, 1);
});

/** A .. Z, AA ..: as the server names the rows of a grid. @param {number} row */
function rowName(row) {
  const letter = String.fromCharCode(65 + (row % 26));
  return row < 26 ? letter : rowName(Math.floor(row / 26) - 1) + letter;
}
