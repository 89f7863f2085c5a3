// The server goes away and comes back: the page says so, keeps what was chosen, and heals.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "./stage.mjs";

const stage = Stage.set();

test("a lost connection shows, and the page heals with the server", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  shopper.foreseeNoServer();
  await shopper.visit(event);
  await shopper.press("B-2");
  const { hold } = await shopper.state();
  const stands = (/** @type {string} */ state) =>
    shopper.page.locator(`[data-part="connection-state"][data-state="${state}"]`).waitFor();
  await stands("live");

  await stage.server.stop();
  await stands("lost");
  await shopper.reads("connection-state", /Connection lost/);
  const { x, y } = await shopper.pointOf("B-3");
  await shopper.page.mouse.click(x, y);
  await stands("unsent");
  assert.deepEqual((await shopper.state()).wanted, [{ seat: "B-2" }, { seat: "B-3" }]);

  await stage.server.start();
  await stands("live");
  await shopper.holds("B-2", "B-3");
  assert.equal((await shopper.state()).hold.id, hold.id);
  // Live again in deed: what another shopper does arrives.
  const rival = await stage.server.rival();
  await rival.hold(event, "D-1");
  await shopper.seatIs("D-1", "held");
});

test("without a network the page says so at once, and heals when it is back", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  shopper.foreseeNoServer();
  await shopper.visit(event);
  const stands = (/** @type {string} */ state) =>
    shopper.page.locator(`[data-part="connection-state"][data-state="${state}"]`).waitFor();
  await stands("live");
  await shopper.page.context().setOffline(true);
  await stands("lost");
  await shopper.page.context().setOffline(false);
  await stands("live");
  const rival = await stage.server.rival();
  await rival.hold(event, "D-1");
  await shopper.seatIs("D-1", "held");
});

test("a confirm whose answer is lost is the same confirm after a reload", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  shopper.foreseeNoServer();
  await shopper.visit(event);
  await shopper.press("B-2");
  const { hold } = await shopper.state();
  // The server books it; its answer never arrives.
  let arrived = (/** @type {{id: string}} */ _booking) => {};
  const booked = new Promise((/** @type {typeof arrived} */ resolve) => (arrived = resolve));
  await shopper.page.route(/\/confirm$/, async (route) => {
    const answer = await (await route.fetch()).json();
    await route.abort("connectionreset");
    arrived(answer);
  });
  await shopper.part("confirm").click();
  const { id } = await booked;
  await shopper.page.reload();
  assert.equal(await shopper.booking(), id);
  const { lines, hold: of } = await stage.server.done("GET", `/v1/bookings/${id}`);
  assert.deepEqual([lines.length, of], [1, hold.id]);
});

test("a page opened while there is no server waits for it", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  shopper.foreseeNoServer();
  shopper.foreseen.push(/^Unreachable/);
  await shopper.page.goto("/");
  await shopper.part("event-list").waitFor();
  await stage.server.stop();
  await shopper.page.evaluate((id) => (location.hash = `#/events/${id}`), event);
  assert.equal(await shopper.part("failure").getAttribute("data-code"), "unreachable");
  // It is tried again by itself, and its reader is left alone.
  await shopper.page.getByText("Try again").focus();
  const before = await shopper.part("failure").elementHandle();
  await shopper.page.waitForEvent("requestfailed");
  await shopper.page.waitForEvent("requestfailed");
  const isKept = (/** @type {Element} */ page) => page.isConnected && page.contains(document.activeElement);
  assert.ok(await before.evaluate(isKept));
  await stage.server.start();
  await shopper.live(event);
});
