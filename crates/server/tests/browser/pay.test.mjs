// Paying in the demo: what each test card leads to, and that the seats follow the money.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "./stage.mjs";

const stage = Stage.set(["demo"]);

test("a good card buys: the seats are sold, the money is taken", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.press("D-4", "D-5");
  const booking = await shopper.buy("good");
  assert.equal(await shopper.part("booking-total").innerText(), "€90.00");
  assert.equal(await shopper.part("booking-booking").innerText(), booking);
  await shopper.part("back-to-map").click();
  await shopper.live(event);
  assert.equal(await shopper.page.evaluate(() => window.__soldonce.seatState("D-4")), "sold");
  assert.equal((await shopper.state()).hold, null);
});
