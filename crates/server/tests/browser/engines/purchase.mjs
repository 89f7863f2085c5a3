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
    const hall = document.querySelector('[data-part="hall"]');
    return hall?.dataset.event === id && hall.querySelector('[data-part="connection-state"][data-state="live"]');
  }, event);
  const said = await browser.until(() => [document.querySelector('[data-part="forgets"]').checkVisibility()]);
  assert.deepEqual(said, [forgets]);
  await browser.press(await browser.until(pointOf, "Row B seat 2"));
  const holds = (/** @type {string} */ wanted) =>
    browser.until((seats) => {
      const lines = [...document.querySelectorAll('[data-part="hold-units"] li')];
      const isPending = lines.some((line) => line.classList.contains("pending"));
      return !isPending && lines.map((line) => line.dataset.unit).sort().join() === seats;
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
    const page = document.querySelector('[data-part="booking"][data-state="confirmed"]');
    const paid = page?.querySelector('[data-part="booking-paid"]')?.textContent;
    return paid?.includes("90.00") && [page.dataset.booking, location.href];
  });
  const { state, lines } = await server.done("GET", `/v1/bookings/${booking}`);
  assert.deepEqual([state, lines.map(({ seat }) => seat).sort()], ["confirmed", ["B-2", "B-3"]]);
  // Its link leads back to it.
  await browser.goto("about:blank");
  await browser.goto(link);
  await browser.until((id) => document.querySelector(`[data-part="booking"][data-booking="${id}"]`), booking);
}

/** Where the map names a seat to a mouse. Runs in the page. @param {string} name */
function pointOf(name) {
  const canvas = document.querySelector('[data-part="seat-map"]');
  const tip = document.querySelector('[data-part="tip"]');
  const { left, top, right, bottom } = canvas.getBoundingClientRect();
  const STEP_PX = 8;
  for (let y = top; y < bottom; y += STEP_PX) {
    for (let x = left; x < right; x += STEP_PX) {
      const at = { clientX: x, clientY: y, pointerType: "mouse", bubbles: true };
      canvas.dispatchEvent(new PointerEvent("pointermove", at));
      if (!tip.hidden && tip.querySelector("strong").textContent === name) return { x, y };
    }
  }
  return null;
}
