// Builds elements and speaks to screen readers. Text always enters as text, never as markup.

/**
 * @typedef {Node|string|null|undefined|false} Child
 *
 * @param {string} tag  "button.primary" sets the class.
 * @param {Record<string, any>} [attributes]  `on<event>` adds a listener, `data-*` and the rest
 *   are set as attributes; `true` sets an empty one, `false` and `null` none.
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length > 0) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) setAttribute(element, key, value);
  element.append(...present(children));
  return element;
}

/**
 * @param {string} kind  Its class. @param {string} name  Its part. @param {string} text
 * @param {() => void} act @param {boolean} [disabled]
 */
export function button(kind, name, text, act, disabled = false) {
  const attributes = { type: "button", "data-part": name, disabled, onclick: act };
  return /** @type {HTMLButtonElement} */ (el(`button.${kind}`, attributes, text));
}

/**
 * A button that shows an icon alone.
 * @param {string} tag  As in `el`. @param {keyof typeof GLYPHS} glyph @param {string} label  What it does.
 * @param {() => void} act @param {Record<string, any>} [more]  Further attributes.
 */
export function iconButton(tag, glyph, label, act, more) {
  const attributes = { type: "button", "aria-label": label, onclick: act, ...more };
  return /** @type {HTMLButtonElement} */ (el(tag, attributes, icon(glyph)));
}

/** @param {Element} element @param {string} key @param {any} value */
function setAttribute(element, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
  else element.setAttribute(key, value === true ? "" : String(value));
}

/** @param {Child[]} children @returns {(Node|string)[]} */
function present(children) {
  return children.flatMap((child) =>
    child === null || child === undefined || child === false ? [] : [child],
  );
}

/** Replaces what an element contains. @param {Element} element @param {...Child} children */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

/**
 * As `fill`, for what is drawn again while the shopper may be pressing it: a child that looks as the
 * new one stays, with its listeners, and is not moved. A button that is replaced between the press
 * and its end is never clicked, so children that look alike must do the same.
 * @param {Element} element @param {...Child} children
 */
export function amend(element, ...children) {
  const old = [...element.childNodes];
  const next = present(children).map((child) => {
    const fresh = typeof child === "string" ? document.createTextNode(child) : child;
    const kept = old.findIndex((node) => node.isEqualNode(fresh));
    return kept < 0 ? fresh : old.splice(kept, 1)[0];
  });
  for (const node of old) node.remove();
  next.forEach((node, k) => {
    const there = element.childNodes[k] ?? null;
    if (node !== there) element.insertBefore(node, there);
  });
}

/** Whether something may have the focus, or keep it. @param {Element} element */
export const canFocus = (element) => element.checkVisibility() && !element.matches(":disabled");

/** Whether a button waits: it keeps the focus, which a disabled one loses, so a press of it must do no harm.
 *  @param {Element} button @param {boolean} waits */
export function setWaiting(button, waits) {
  button.setAttribute("aria-disabled", String(waits));
}

/** Sets text only if it differs, so that an idle page causes no layout. */
export function setText(/** @type {Element} */ element, /** @type {string} */ text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Stroked 24-unit glyphs, drawn here because the page carries no foreign icons. */
const GLYPHS = {
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  close: "M6 6l12 12M18 6L6 18",
  check: "M5 12.5l4.5 4.5L19 7.5",
  back: "M15 5l-7 7 7 7",
  clock: "M12 7v5l3 2M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
  sun: "M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5",
  auto: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 3v18M12 7h7.4M12 12h9M12 17h7.4",
  warn: "M12 4L2.8 20h18.4L12 4zM12 10v5M12 17.4v.2",
  pair: "M4 11V7a2 2 0 0 1 2-2h2a2 2 0 0 1 2 2v4M14 11V7a2 2 0 0 1 2-2h2a2 2 0 0 1 2 2v4M3 11v6h18v-6M6 17v2M18 17v2",
};

/** @param {keyof typeof GLYPHS} name */
export function icon(name) {
  const path = shape("path", { d: GLYPHS[name] });
  return shape("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, path);
}

/** As `el`, of SVG. @param {string} name @param {Record<string, any>} attributes @param {...Element} children */
export function shape(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) setAttribute(element, key, value);
  element.append(...children);
  return element;
}

/**
 * Says something through the live region. `urgent` interrupts; the rest waits its turn.
 * @param {string} text @param {"polite"|"urgent"} [tone]
 */
export function announce(text, tone = "polite") {
  const region = document.getElementById(tone === "urgent" ? "say-urgent" : "say-polite");
  if (!region) return;
  // The same words twice in a row are only read again if the node is a new one.
  const line = document.createElement("p");
  line.textContent = text;
  region.append(line);
  while (region.childElementCount > 3) region.firstElementChild?.remove();
}

/** Scrolls something into the middle of the view. @param {Element} element */
export function reveal(element) {
  const behavior = reducedMotion.matches ? "auto" : "smooth";
  element.scrollIntoView({ block: "center", behavior });
}

/** Motion beyond the necessary is left out for those who asked for that. */
export const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
