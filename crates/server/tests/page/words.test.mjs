// What the page says: times, and which keys it leaves to the browser.

import "./browser.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { dateAndTime } from "../../web/js/format.js";
import { SeatGrid } from "../../web/js/seatgrid.js";

test("a time is told with its zone", () => {
  assert.match(dateAndTime("2030-01-01T12:00:00Z"), /2030, .*\d:\d\d.* (GMT|[A-Z]{3,5})/);
});

test("Ctrl leads through the seats by arrows, Home and End; all else with it is the browser's", () => {
  /** Whether the grid takes a key for itself. @param {string} key */
  const takes = (key) => {
    let taken = false;
    const event = { key, ctrlKey: true, altKey: false, metaKey: false, preventDefault: () => (taken = true) };
    const grid = { goalOf: () => 1, actionOf: () => () => {}, focus: () => {} };
    SeatGrid.prototype.key.call(/** @type {any} */ (grid), /** @type {any} */ (event));
    return taken;
  };
  const keys = ["ArrowLeft", "ArrowDown", "Home", "End", "+", "=", "-", "0", "n", "PageDown", "Enter"];
  assert.deepEqual(keys.filter(takes), ["ArrowLeft", "ArrowDown", "Home", "End"]);
});
