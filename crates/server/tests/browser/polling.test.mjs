// A server whose pages poll: no stream is opened, the map is live, and it heals with the server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "./stage.mjs";

const stage = Stage.set(["serve", "--shoppers", "open", "--free-sales=on", "--feed", "poll"]);

test("a page that polls shows what others do, over a restart of the server too", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  shopper.foreseeNoServer();
  /** @type {string[]} */ const asked = [];
  shopper.page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await shopper.visit(event);
  const stands = (/** @type {string} */ state) =>
    shopper.page.locator(`[data-part="connection-state"][data-state="${state}"]`).waitFor();
  await stands("live");
  const rival = await stage.server.rival();
  await rival.hold(event, "D-1");
  await shopper.seatIs("D-1", "held");
  await stage.server.stop();
  await stands("lost");
  await stage.server.start();
  await stands("live");
  await (await stage.server.rival()).hold(event, "D-3");
  await shopper.seatIs("D-3", "held");
  await stage.server.done("POST", `/v1/events/${event}/cancel`, {});
  await shopper.part("sale-note").getByText("This event was cancelled").waitFor();
  assert.ok(asked.some((path) => path.endsWith("/frames")));
  assert.ok(!asked.some((path) => path.endsWith("/feed")), "a stream was opened");
});

test("the map goes on while the event cannot be read again", async (t) => {
  const event = await stage.server.event();
  const shopper = await stage.shopper(t);
  await shopper.visit(event);
  await shopper.page.locator('[data-part="connection-state"][data-state="live"]').waitFor();
  shopper.foresee(503);
  let refused = 0;
  await shopper.page.route(`**/v1/events/${event}`, (route) => {
    if (refused === 2) return route.continue();
    refused += 1;
    return route.fulfill({ status: 503 });
  });
  let snapshots = 0;
  shopper.page.on("request", (request) => {
    if (request.url().endsWith("/seats")) snapshots += 1;
  });
  await stage.server.done("POST", `/v1/events/${event}/cancel`, {});
  await shopper.part("sale-note").getByText("This event was cancelled").waitFor();
  assert.deepEqual({ refused, snapshots }, { refused: 2, snapshots: 0 });
});
