// Dark and light: the system's preference until the shopper chooses. The choice is an attribute
// of the root element; all colours are custom properties of the style sheets.

import { el, fill, icon } from "./dom.js";
import { lasting } from "./storage.js";

/** @typedef {"auto"|"light"|"dark"} Theme */

const STORED_AS = "soldonce.theme";
const NAMES = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
const GLYPH = /** @type {const} */ ({ auto: "auto", light: "sun", dark: "moon" });

const systemDark = matchMedia("(prefers-color-scheme: dark)");
/** @type {Set<() => void>} */
const watchers = new Set();

/** @returns {Theme} */
function chosen() {
  const stored = lasting.get(STORED_AS);
  return stored === "light" || stored === "dark" ? stored : "auto";
}

function apply() {
  const theme = chosen();
  const dark = theme === "dark" || (theme === "auto" && systemDark.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  for (const watcher of watchers) watcher();
}

/** Calls back after each change; the map reads its colours anew. @param {() => void} watcher */
export function watchTheme(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** From the system's theme to its opposite first: every press but the last is to be seen. */
function next() {
  /** @type {Theme[]} */
  const order = systemDark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
  return order[(order.indexOf(chosen()) + 1) % order.length];
}

/** The button of the header: steps through system, light, dark. */
export function themeToggle() {
  const button = el("button.icon-button", { type: "button", "data-part": "theme-toggle" });
  const show = () => {
    const theme = chosen();
    button.setAttribute("aria-label", NAMES[theme]);
    button.setAttribute("title", NAMES[theme]);
    fill(button, icon(GLYPH[theme]));
  };
  button.addEventListener("click", () => {
    lasting.set(STORED_AS, next());
    apply();
    show();
  });
  show();
  return button;
}

/** Reads one colour of the present theme. @param {string} name */
export function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

systemDark.addEventListener("change", apply);
apply();
