// The demo with two hundred bots: the map keeps up, stays true, and a person can still buy.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "./stage.mjs";

const BOTS = 200;
const stage = Stage.set(["demo", "--bots", String(BOTS)]);

/** How many units are in each state by the ledger, and as of which commit. */
function snapshot(shopper) {
  return shopper.page.evaluate(async () => {
    const { seq, ...snapshot } = await (await fetch("/v1/events/hamlet/seats")).json();
    const counts = { free: snapshot.free };
    for (const name of ["held", "sold", "blocked"]) {
      counts[name] = snapshot[name].length;
      for (const area of snapshot.areas) counts[name] += area[name];
    }
    return { seq, counts };
  });
}

test("200 bots: the map agrees with the ledger, and a person buys among them", async (t) => {
  const shopper = await stage.shopper(t);
  await shopper.page.goto("/");
  await shopper.page.locator('[data-event="hamlet"]').click();
  await shopper.live("hamlet");
  const { seq } = await shopper.state();
  await shopper.page.evaluate(() => window.__soldonce.resetFrames());
  await shopper.until((first) => window.__soldonce.state().seq > first + 300, seq);
  t.diagnostic(`${BOTS} bots: ${JSON.stringify(await shopper.frames())}`);

  // Compared by what the page knew at the same commit.
  await shopper.remember();
  let [recorded, seen] = [await snapshot(shopper), undefined];
  for (;;) {
    await shopper.until((seq) => window.__soldonce.state().seq >= seq, recorded.seq);
    seen = await shopper.page.evaluate((at) => window.past.find(({ seq }) => seq === at)?.counts, recorded.seq);
    if (seen) break;
    // A page that lagged behind was given a snapshot, and passed over some commits.
    recorded = await snapshot(shopper);
  }
  assert.deepEqual(seen, recorded.counts);

  // However long they buy, they leave a visitor something to choose from.
  const total = seen.free + seen.held + seen.sold + seen.blocked;
  await shopper.until((most) => window.__soldonce.state().counts.free < most, total * 0.45);
  const full = await shopper.state();
  await shopper.until((first) => window.__soldonce.state().seq > first + 300, full.seq);
  const { free } = (await shopper.state()).counts;
  assert.ok(free > total * 0.3, `${free} of ${total} are free`);

  // The bots buy seats only, so the standing floor is never sold out.
  await shopper.page.locator('[data-part^="area-"][data-part$="-plus"]').click();
  await shopper.until(() => window.__soldonce.state().hold);
  await shopper.settled();
  await shopper.buy();
  await shopper.bookingIs("confirmed");
});
