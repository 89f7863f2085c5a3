// How commands are sent: what is repeated and for how long, and that a reload loses no hold when the server is
// busy meanwhile.

import "./browser.mjs";
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Refused, Unreachable, asShopper } from "../../web/js/api.js";
import { insist } from "../../web/js/attempts.js";
import { Feed } from "../../web/js/feed.js";
import { Holding } from "../../web/js/holding.js";
import { storeHold } from "../../web/js/holdstore.js";
import { lasting } from "../../web/js/storage.js";
import { EVENT, FREE_OF_CHARGE, FakeServer, namesOf } from "./server.mjs";

const WATCH = { abandoned: () => false, reached: () => {}, unreachable: () => {}, waiting: () => {} };
const busy = (/** @type {number} */ seconds, code = "read_only") => new Refused({ status: 503, code }, seconds * 1000);

/** Lets each wait end at once, and tells how long they were together. @template T @param {() => Promise<T>} act */
async function hurried(act) {
  let waited = 0;
  const timer = mock.method(globalThis, "setTimeout", (/** @type {() => void} */ done, /** @type {number} */ ms) => {
    waited += ms;
    queueMicrotask(done);
  });
  try {
    const outcome = await act().catch((error) => error);
    return { outcome, waited };
  } finally {
    timer.mock.restore();
  }
}

/** Refuses so many times, then answers. @param {number} times @param {Error} refusal */
function refusing(times, refusal) {
  const call = { tries: 0, attempt: async () => ((call.tries += 1) > times ? "answer" : Promise.reject(refusal)) };
  return call;
}

test("what one has is read until the server answers, a change is tried once more", async () => {
  for (const [kind, tries] of /** @type {const} */ ([["patient", 4], ["repeatable", 2], ["unsafe-to-repeat", 2]])) {
    const call = refusing(3, busy(1));
    const { outcome } = await hurried(() => insist(call.attempt, WATCH, kind));
    assert.equal(call.tries, tries, kind);
    assert.equal(outcome, kind === "patient" ? "answer" : outcome, kind);
  }
});

test("patience has an end, and ends at once where the server asks for a long pause or has made a mistake", async () => {
  const forever = refusing(Infinity, busy(5));
  const { outcome, waited } = await hurried(() => insist(forever.attempt, WATCH, "patient"));
  assert.ok(outcome instanceof Refused && waited === 60_000, `${waited} ms`);
  for (const refusal of [busy(30), new Refused({ status: 500, code: "internal_error" }, 0)]) {
    const call = refusing(Infinity, refusal);
    await hurried(() => insist(call.attempt, WATCH, "patient"));
    assert.equal(call.tries, 1);
  }
});

test("a change whose outcome the server does not know is not sent again blindly", async () => {
  for (const [kind, tries] of /** @type {const} */ ([["unsafe-to-repeat", 1], ["repeatable", 2]])) {
    const call = refusing(1, busy(1, "outcome_unknown"));
    const { outcome } = await hurried(() => insist(call.attempt, WATCH, kind));
    assert.equal(call.tries, tries);
    assert.equal(outcome instanceof Unreachable, kind === "unsafe-to-repeat");
  }
});

test("a reload while the ledger takes nothing for three seconds keeps the hold, and what is pressed joins it", async () => {
  const server = new FakeServer(8);
  const held = server.hold([{ seat: "A-1" }]);
  storeHold(EVENT.id, { id: held.id, secret: held.secret });
  lasting.set("soldonce.session", "open");
  /** @type {string[]} */ const sent = [];
  let refusals = 3;
  mock.method(globalThis, "fetch", async (/** @type {string} */ path, /** @type {RequestInit} */ { method, body }) => {
    sent.push(`${method} ${path}`);
    if (refusals > 0) {
      refusals -= 1;
      return Response.json({ code: "read_only" }, { status: 503, headers: { "Retry-After": "1" } });
    }
    const id = path.split("/")[3];
    const route = /** @type {any} */ (`${method} ${path.replace(id, path.includes("/events/") ? "{event}" : "{hold}")}`);
    const call = { route, id, body: body && JSON.parse(String(body)) };
    const outcome = server.perform(/** @type {any} */ ({ call }));
    assert.ok("answer" in outcome, JSON.stringify(outcome));
    return Response.json(outcome.answer);
  });
  const inventory = /** @type {any} */ ({ applyAnswer: () => {} });
  const holding = new Holding(EVENT, inventory, FREE_OF_CHARGE);
  const { outcome } = await hurried(async () => {
    holding.send();
    holding.dispatch({ type: "toggle", seat: "A-5" });
    while (!holding.settled) await new Promise((next) => setImmediate(next));
  });
  holding.close();
  mock.restoreAll();
  assert.equal(outcome, undefined);
  assert.deepEqual(namesOf(holding.state.hold?.units ?? []), ["A-1", "A-5"]);
  const find = `GET /v1/holds/${held.id}`;
  assert.deepEqual(sent, [find, find, find, find, `PATCH /v1/holds/${held.id}`]);
});

test("where cookies do not come back, the token of a later session takes the place of the earlier one", async () => {
  let sessions = 0;
  mock.method(globalThis, "fetch", async (/** @type {string} */ path, /** @type {any} */ { headers }) => {
    if (path === "/v1/sessions") return Response.json({ session: `token-${(sessions += 1)}` }, { status: 201 });
    const isKnown = headers.Authorization === `Bearer token-${sessions}`;
    return isKnown ? Response.json({ holds: [] }) : Response.json({ code: "unauthenticated" }, { status: 401 });
  });
  const list = () => asShopper({ route: "GET /v1/holds" });
  await list();
  const first = sessions;
  // The session is over, a day later perhaps.
  sessions += 10;
  await list();
  mock.restoreAll();
  assert.ok(sessions > first + 10);
});

test("the fence of what is given back stands in the address, as its command has no body", async () => {
  /** @type {string[]} */ const sent = [];
  mock.method(globalThis, "fetch", async (/** @type {string} */ path, /** @type {any} */ { method }) => {
    sent.push(`${method} ${path}`);
    return Response.json({ id: "hold-1" });
  });
  lasting.set("soldonce.session", "open");
  await asShopper({ route: "DELETE /v1/holds/{hold}", id: "hold-1", fence: 0 });
  await asShopper({ route: "DELETE /v1/holds/{hold}", id: "hold-1" });
  mock.restoreAll();
  assert.deepEqual(sent, ["DELETE /v1/holds/hold-1?fence=0", "DELETE /v1/holds/hold-1"]);
});

test("a snapshot counts as known once it is applied", async () => {
  const answer = () => Response.json({ seq: 5 }, { headers: { ETag: '"5"' } });
  mock.method(globalThis, "fetch", async () => answer());
  /** @type {number[]} */ const applied = [];
  const inventory = { applySnapshot: (/** @type {{seq: number}} */ { seq }) => applied.push(seq) };
  const feed = Object.assign(Object.create(Feed.prototype), { event: EVENT.id, inventory, version: { etag: "" } });
  const snapshot = await feed.snapshot();
  mock.restoreAll();
  assert.equal(feed.version.etag, "");
  feed.apply(snapshot);
  assert.deepEqual([feed.version.etag, applied], ['"5"', [5]]);
});
