// What the server refuses with, the page has words for; and what it asks, it may ask again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "./stage.mjs";

const stage = Stage.set();

test("every code of the API has its sentence on the page", async (t) => {
  const shopper = await stage.shopper(t);
  await shopper.page.goto("/");
  const { codes, unknown, wordless } = await shopper.page.evaluate(async () => {
    const at = "/assets/js/refusal.js";
    const { isKnown, words } = await import(at);
    const api = await (await fetch("/openapi.json")).json();
    const codes = api["x-problems"].map(({ code }) => code);
    return {
      codes,
      unknown: codes.filter((code) => !isKnown(code)),
      wordless: codes.filter((code) => !words({ code, status: 400 }, () => "Seat 1").title),
    };
  });
  assert.ok(codes.length > 30, `${codes.length} codes`);
  assert.deepEqual([unknown, wordless], [[], []]);
});

test("every new hold has a key, and a repetition has the same one", async (t) => {
  const chart = {
    format: "seats",
    seats: ["A-1", "A-2", "A-3"].map((seat) => ({ seat, category: "Standard" })),
    areas: [{ area: "floor", capacity: 5, category: "Standard" }],
  };
  const event = await stage.server.event({ chart });
  const shopper = await stage.shopper(t);
  /** @type {string[]} */ const keys = [];
  let lost = false;
  await shopper.page.route(/\/holds$/, async (route) => {
    const request = route.request();
    if (request.method() !== "POST") return route.continue();
    keys.push((await request.allHeaders())["idempotency-key"] ?? "none");
    if (lost) return route.continue();
    lost = true;
    // The server holds it; its answer never arrives.
    await route.fetch();
    return route.abort("connectionreset");
  });
  shopper.foreseeNoServer();
  await shopper.visit(event);
  await shopper.part("area-floor-plus").click();
  await shopper.holds("floor");
  assert.deepEqual([keys.length, new Set(keys).size], [2, 1], keys.join());
  await shopper.part("best-minus").click();
  await shopper.part("best-together").click();
  await shopper.until(() => window.__soldonce.state().hold?.units[0].seat);
  await shopper.settled();
  assert.equal(new Set(keys).size, 2, keys.join());
  for (const key of keys) assert.match(key, /^[0-9a-f]{32}$/);
  // One place was held in all, and given back for the seat.
  await shopper.until(() => window.__soldonce.state().areas.floor.free === 5);
});
