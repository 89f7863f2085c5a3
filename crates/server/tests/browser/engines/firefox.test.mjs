// A purchase in another engine: seats by mouse and by keys, the good card, the booking.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { Server, named } from "../server.mjs";
import { Firefox, KEYS } from "./marionette.mjs";

const BROWSERS = {
  "as it comes": {},
  "without cookies and storage": { "network.cookie.cookieBehavior": 2 },
};

for (const [how, preferences] of Object.entries(BROWSERS)) {
  test(`Firefox, ${how}, buys two seats`, async (t) => {
    const server = await Server.start(["demo"]);
    t.after(() => server.stop());
    const event = await server.event();
    const firefox = await Firefox.launch(join(named("SOLDONCE_SCRATCH"), randomUUID()), preferences);
    t.after(() => firefox.close());

    await firefox.goto(`${server.url}/#/events/${event}`);
    await firefox.until((id) => {
      const state = window.__soldonce?.state();
      return state?.event === id && state.connection === "live" && state.settled;
    }, event);
    const forgets = await firefox.until(() => [document.querySelector('[data-testid="forgets"]').checkVisibility()]);
    assert.deepEqual(forgets, ["network.cookie.cookieBehavior" in preferences]);
    await firefox.press(await firefox.until(() => window.__soldonce.seatPoint("B-2")));
    const holds = (/** @type {string} */ wanted) =>
      firefox.until((seats) => {
        const state = window.__soldonce.state();
        const held = (state.hold?.units ?? []).map(({ seat }) => seat);
        return state.settled && held.sort().join() === seats;
      }, wanted);
    await holds("B-2");
    // The keys go on where the mouse was.
    await firefox.until(() => {
      document.querySelector('[data-seat][tabindex="0"]').focus();
      return document.activeElement.ariaLabel.startsWith("Row B seat 2");
    });
    await firefox.type(KEYS.right, KEYS.enter);
    await holds("B-2,B-3");

    await firefox.click("pay");
    await firefox.click("card-good");
    const [booking, link] = await firefox.until(() => {
      const page = document.querySelector('[data-testid="booking"][data-state="confirmed"]');
      const paid = page?.querySelector('[data-testid="booking-paid"]')?.textContent;
      return paid?.includes("90.00") && [page.dataset.booking, location.href];
    });
    const { state, lines } = await server.done("GET", `/v1/bookings/${booking}`);
    assert.deepEqual([state, lines.map(({ seat }) => seat).sort()], ["confirmed", ["B-2", "B-3"]]);
    // Its link leads back to it.
    await firefox.goto("about:blank");
    await firefox.goto(link);
    await firefox.until((id) => document.querySelector(`[data-testid="booking"][data-booking="${id}"]`), booking);
  });
}
