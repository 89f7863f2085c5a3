// The tints of categories: letters upon them can be read, and light ones are told apart without colour vision.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const SHEET = readFileSync(join(import.meta.dirname, "../../web/css/theme.css"), "utf8");
/** Of letters of their size (WCAG 2.2, 1.4.3). */
const CONTRAST_MIN = 4.5;
/** The light tints, the lightest first. */
const ORDER = [3, 5, 2, 1, 4, 0, 7, 6];

/** The relative luminance of "#rrggbb". @param {string} colour */
function luminance(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** @param {"light"|"dark"} theme */
function coloursOf(theme) {
  const rules = SHEET.split(`[data-theme="${theme}"] {`)[1].split("}")[0];
  const colour = (/** @type {string} */ name) => luminance(new RegExp(`--${name}: (#[0-9a-f]{6});`).exec(rules)?.[1] ?? "");
  return { ink: colour("seat-ink"), tints: ORDER.map((_, tint) => colour(`tint-${tint}`)) };
}

test("letters upon the tints of categories have contrast enough", () => {
  for (const theme of /** @type {const} */ (["light", "dark"])) {
    const { ink, tints } = coloursOf(theme);
    const contrasts = tints.map((tint) => (Math.max(ink, tint) + 0.05) / (Math.min(ink, tint) + 0.05));
    assert.ok(contrasts.every((contrast) => contrast >= CONTRAST_MIN), `${theme}: ${contrasts}`);
  }
});

test("light tints differ in how light they are", () => {
  const { tints } = coloursOf("light");
  const sorted = ORDER.map((tint) => tints[tint]);
  assert.deepEqual(sorted, tints.toSorted((a, b) => b - a));
  assert.equal(new Set(sorted).size, ORDER.length);
});
