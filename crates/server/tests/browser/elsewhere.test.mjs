// A server that takes no money and gives nothing away: what costs something is held here and sold by
// the shop, and the page offers no confirm that would be refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "./stage.mjs";

const stage = Stage.set(["serve", "--shoppers", "open", "--free-sales=off"]);

test("what costs something has no confirm on the page, and is held", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("B-3");
  await shopper.holds("B-3");
  await shopper.part("elsewhere").waitFor();
  assert.equal(await shopper.part("confirm").isVisible(), false);
  assert.equal(await shopper.part("release").isVisible(), true);
});
