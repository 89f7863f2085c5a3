// A purchase in another engine than Chromium: seats by mouse and by keys, the good card, the booking.

import assert from "node:assert/strict";
import { KEYS } from "./driven.mjs";

/**
 * @param {import("../server.mjs").Server} server @param {import("./driven.mjs").Driven} browser
 * @param {boolean} forgets  Whether the browser stores nothing, which the page then says.
 */
export async function buyTwoSeats(server, browser, forgets) {
  const event = await server.event();
  await browser.goto(`${server.url}/#/events/${event}`);
  await browser.until((id) => {
    const state = window.__soldonce?.state();
    return state?.event === id && state.connection === "live" && state.settled;
  }, event);
  const said = await browser.until(() => [document.querySelector('[data-testid="forgets"]').checkVisibility()]);
  assert.deepEqual(said, [forgets]);
  await browser.press(await browser.until(() => window.__soldonce.seatPoint("B-2")));
  const holds = (/** @type {string} */ wanted) =>
    browser.until((seats) => {
      const state = window.__soldonce.state();
      const held = (state.hold?.units ?? []).map(({ seat }) => seat);
      return state.settled && held.sort().join() === seats;
    }, wanted);
  await holds("B-2");
  // The keys go on where the mouse was.
  await browser.until(() => {
    document.querySelector('[data-seat][tabindex="0"]').focus();
    return document.activeElement.ariaLabel.startsWith("Row B seat 2");
  });
  await browser.type(KEYS.right, KEYS.enter);
  await holds("B-2,B-3");

  await browser.click("pay");
  await browser.click("card-good");
  const [booking, link] = await browser.until(() => {
    const page = document.querySelector('[data-testid="booking"][data-state="confirmed"]');
    const paid = page?.querySelector('[data-testid="booking-paid"]')?.textContent;
    return paid?.includes("90.00") && [page.dataset.booking, location.href];
  });
  const { state, lines } = await server.done("GET", `/v1/bookings/${booking}`);
  assert.deepEqual([state, lines.map(({ seat }) => seat).sort()], ["confirmed", ["B-2", "B-3"]]);
  // Its link leads back to it.
  await browser.goto("about:blank");
  await browser.goto(link);
  await browser.until((id) => document.querySelector(`[data-testid="booking"][data-booking="${id}"]`), booking);
}
