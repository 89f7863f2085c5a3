// The map is what the feed says, however its commits are cut into frames, and its picture is what the map says.

import "./browser.mjs";
import "./document.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Feed } from "../../web/js/feed.js";
import { FREE, HELD, Inventory, SOLD } from "../../web/js/inventory.js";
import { Layer } from "../../web/js/layer.js";
import { Plan } from "../../web/js/plan.js";

const seat = (/** @type {string} */ id) => ({ seat: id, label: id, category: "S" });
const row = (/** @type {string} */ name) => ({
  row: name,
  seats: Array.from({ length: 400 }, (_, k) => seat(`${name}-${k + 1}`)),
});
const CHART = /** @type {any} */ ({
  format: "soldonce",
  name: "Hall",
  zones: [{ zone: "z", name: "Z", rows: [row("A"), row("B")] }],
  areas: [{ area: "floor", label: "Floor", capacity: 9, category: "S" }],
});

const inventory = () => {
  const made = new Inventory(new Plan(CHART, { S: 1 }));
  made.applySnapshot(/** @type {any} */ ({ seq: 5, digest: "5e884898", held: [], sold: [], blocked: [], areas: [] }));
  return made;
};
const frame = (/** @type {number} */ seq, /** @type {any[]} */ ...changes) => ({
  from: seq,
  seq,
  digest: `0000000${seq}`,
  at: "2030-01-01T12:00:00.000Z",
  changes,
});
const stateOf = (/** @type {Inventory} */ { plan, state }, /** @type {string} */ id) =>
  state[/** @type {number} */ (plan.indexOf.get(id))];

test("a run is every seat between its ends, over rows too", () => {
  const map = inventory();
  /** @type {number[]} */ const redrawn = [];
  map.onSeat = (changed) => void redrawn.push(changed);
  map.applyFrame(frame(6, { state: "held", seats: ["A-1", ["A-399", "B-2"]] }, { area: "floor", free: 4, held: 5 }));
  assert.deepEqual(redrawn, [0, 398, 399, 400, 401]);
  assert.deepEqual(["A-1", "A-2", "B-2", "B-3"].map((id) => stateOf(map, id)), [HELD, FREE, HELD, FREE]);
  assert.deepEqual([map.seq, map.areas.get("floor")], [6, { free: 4, held: 5, sold: 0, blocked: 0 }]);
});

test("many changes are drawn as one", () => {
  const map = inventory();
  let many = 0;
  map.onSeat = () => assert.fail("seat by seat");
  map.onMany = () => (many += 1);
  map.applyFrame(frame(6, { state: "sold", seats: [["A-1", "B-400"]] }));
  assert.deepEqual([many, map.counts().sold], [1, 800]);
});

test("a frame that ends before the answer to a command does not undo it", () => {
  const map = inventory();
  map.applyAnswer(["A-1"], "held", 8);
  map.applyFrame({ ...frame(7, { state: "sold", seats: [["A-1", "A-2"]] }), from: 6 });
  assert.deepEqual(["A-1", "A-2"].map((id) => stateOf(map, id)), [HELD, SOLD]);
  map.applyFrame({ ...frame(9, { state: "free", seats: ["A-1"] }), from: 7 });
  assert.equal(stateOf(map, "A-1"), FREE);
});

test("a copy of the ledger that was put back counts, and not what was answered before", () => {
  const map = inventory();
  map.applyAnswer(["A-1", "A-2"], "held", 8);
  map.applyFrame({ ...frame(8, { state: "held", seats: [["A-1", "A-2"]] }), from: 6 });
  map.applySnapshot(/** @type {any} */ ({ seq: 4, held: [], sold: [], blocked: [], areas: [] }));
  map.applyFrame(frame(5, { state: "sold", seats: ["A-2"] }));
  assert.deepEqual(["A-1", "A-2"].map((id) => stateOf(map, id)), [FREE, SOLD]);
});

test("a page that is reset takes a copy whose newest commit it began with, and forgets its own answers", async (t) => {
  const map = inventory();
  const seats = { seq: 5, digest: "5e884898", held: [], sold: [], blocked: [], areas: [] };
  const reply = (/** @type {string} */ path, /** @type {any} */ { headers }) => {
    if (path.includes("/frames")) return Response.json({ reset: true });
    if (headers["If-None-Match"]) return new Response(null, { status: 304 });
    return Response.json(seats, { headers: { ETag: '"5"' } });
  };
  t.mock.method(globalThis, "fetch", async (/** @type {string} */ path, /** @type {any} */ ask) => reply(path, ask));
  const polling = { event: "evening", inventory: map, polls: true, state: "live", version: { etag: '"5"' } };
  const feed = Object.assign(Object.create(Feed.prototype), polling);
  feed.frame(frame(6, { state: "sold", seats: ["A-1"] }));
  map.applyAnswer(["A-2"], "held", 7);
  const isReset = async () => {
    Object.assign(feed, { framesTimer: 1 });
    await feed.readFrames();
    while (feed.syncing) await new Promise(setImmediate);
    feed.shut();
  };
  await isReset();
  assert.deepEqual([map.seq, stateOf(map, "A-1"), stateOf(map, "A-2")], [5, FREE, FREE]);
  seats.seq = 9;
  map.applyAnswer(["A-2"], "held", 10);
  await isReset();
  assert.deepEqual([map.seq, stateOf(map, "A-2")], [9, FREE]);
});

test("the server is told which commit the page knows, and another one of that number counts", async (t) => {
  const map = inventory();
  /** @type {string[]} */ const asked = [];
  const seats = { seq: 6, digest: "00000007", held: ["A-1"], sold: [], blocked: [], areas: [] };
  t.mock.method(globalThis, "fetch", async (/** @type {string} */ path) => {
    asked.push(path);
    return Response.json(seats, { headers: { ETag: '"7"' } });
  });
  const EventSource = class {
    constructor(/** @type {string} */ path) {
      asked.push(path);
    }
    addEventListener() {}
  };
  Object.assign(globalThis, { EventSource });
  t.after(() => Reflect.deleteProperty(globalThis, "EventSource"));
  const quiet = { event: "evening", inventory: map, version: { etag: "" }, heardAt: 0, state: "polling" };
  const feed = Object.assign(Object.create(Feed.prototype), quiet);
  feed.open();
  feed.frame(frame(6, { state: "sold", seats: ["A-1"] }));
  await feed.readFrames();
  assert.equal(stateOf(map, "A-1"), SOLD);
  await feed.poll();
  assert.deepEqual([stateOf(map, "A-1"), map.digest, feed.version.etag], [HELD, "00000007", '"7"']);
  seats.held = [];
  await feed.poll();
  assert.equal(stateOf(map, "A-1"), HELD, "it is the commit that the page knows");
  assert.deepEqual(asked.slice(0, 2), [
    "/v1/events/evening/feed?after=5&digest=5e884898",
    "/v1/events/evening/frames?after=6&digest=00000006",
  ]);
});

test("each of a thousand categories keeps its own price", () => {
  const seats = Array.from({ length: 1000 }, (_, k) => ({ seat: `A-${k + 1}`, label: `A-${k + 1}`, category: `C${k + 1}` }));
  const prices = Object.fromEntries(seats.map(({ category }, k) => [category, 100 + k]));
  const chart = /** @type {any} */ ({ ...CHART, zones: [{ zone: "z", name: "Z", rows: [{ row: "A", seats }] }], areas: [] });
  const plan = new Plan(chart, prices);
  assert.deepEqual(seats.filter(({ seat, category }) => plan.categoryOf(seat).price !== prices[category]), []);
});

test("a picture is true also if the hall sold out while it was drawn and the page was hidden", () => {
  const rows = Array.from({ length: 20 }, (_, k) => row(`R${k}`));
  const plan = new Plan({ ...CHART, zones: [{ zone: "z", name: "Z", rows }] }, { S: 1 });
  for (const sold of [1, 4000, plan.size]) {
    const map = new Inventory(plan);
    map.applySnapshot(/** @type {any} */ ({ seq: 5, held: [], sold: [], blocked: [], areas: [] }));
    const layer = new Layer(plan, map, false);
    const side = new Uint8Array(plan.size);
    // What each seat looks like on the canvas.
    const paint = (/** @type {unknown} */ _, /** @type {number} */ seat) => (side[seat] = map.state[seat]);
    Object.assign(layer, { sheetFor: () => ({ half: 4, side: 8 }), drawSeat: paint, mendSide: paint });
    map.onSeat = (changed) => layer.redraw(changed);
    const { left: x, top: y } = plan.bounds;
    layer.begin({ x, y, width: 1e5, height: 1e5, scale: 1 }, /** @type {any} */ ({}), 1);
    assert.equal(layer.found, plan.size);
    while (layer.drawn < 0.9 * plan.size) layer.step(0);
    for (let k = 0; k < sold; k += 200) {
      const seats = plan.ids.slice(k, Math.min(k + 200, sold));
      map.applyFrame(frame(map.seq + 1, { state: "sold", seats }));
    }
    assert.equal(map.counts().sold, sold);
    while (!layer.step(Infinity));
    assert.equal(side.filter((look, k) => look !== map.state[k]).length, 0, `${sold} sold`);
  }
});
