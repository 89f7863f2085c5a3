// The way in: the frame of the page, and which view stands in it. Views live behind the hash,
// because the server knows one page only: `#/`, `#/events/<id>`, `#/mine`, `#/bookings/<id>` and
// `#/bookings/<id>/<secret>`, the link that outlives a session.

import { Refused } from "./api.js";
import { openBooking } from "./booking.js";
import { clock } from "./clock.js";
import { el, icon } from "./dom.js";
import { openEvents } from "./events.js";
import { openHall } from "./hall.js";
import { openMine } from "./mine.js";
import { words } from "./refusal.js";
import { remembers } from "./storage.js";
import { themeToggle } from "./theme.js";

/** @typedef {{element: HTMLElement, title: string, hash?: string, failed?: string, close: () => void}} View
 *  `hash` is what stands in the address bar in place of what led here; `failed` is what a page of a failure says. */

const RETRY_MS = 4000;
const slot = /** @type {HTMLElement} */ (document.getElementById("view"));

/** @type {View|null} */
let view = null;
let visit = 0;

/** The view that is shown, for a script that imports this module. */
export const shown = () => view;
export { clock };

/** @param {string} hash */
function go(hash) {
  if (location.hash === hash) show();
  else location.hash = hash;
}

/** A link with a stray percent sign names nothing: the list is shown. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

/** @returns {Promise<View>} */
function open() {
  const [, kind, id, secret] = location.hash.replace(/^#/, "").split("/").map(decoded);
  if (kind === "events" && id) return openHall(id, go);
  if (kind === "bookings" && id) return openBooking(id, secret);
  if (kind === "mine") return openMine();
  return openEvents();
}

async function show() {
  visit += 1;
  const mine = visit;
  view?.close();
  // A page of a failure is tried again by itself while it is read, and stands until there is another page.
  if (!view?.failed || view.hash !== location.hash) {
    view = null;
    slot.replaceChildren(el("p.loading", { role: "status" }, "Loading…"));
  }
  try {
    const opened = await open();
    // Two quick clicks: only the last one counts.
    if (mine !== visit) opened.close();
    else place(opened);
  } catch (error) {
    if (mine === visit) fail(failure(error));
  }
}

/** The same failure once more changes nothing but the time of the next try. @param {View} failure */
function fail(failure) {
  if (view && view.failed === failure.failed) view = { ...failure, element: view.element };
  else place(failure);
}

/** @param {View} opened */
function place(opened) {
  view = opened;
  // Here and not where it was opened: an answer that comes late must not name another page.
  if (opened.hash) history.replaceState(null, "", opened.hash);
  document.title = `${opened.title} · Soldonce`;
  slot.replaceChildren(opened.element);
  if (visit > 1) opened.element.querySelector("h1")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** @param {unknown} error @returns {View} */
function failure(error) {
  const refused = error instanceof Refused;
  if (!refused) console.error(error);
  const { title, text } = refused
    ? words(error.problem, (unit) => unit.seat ?? unit.area ?? "")
    : { title: "No connection", text: "The server does not answer. Trying again by itself." };
  const again = () => show();
  // Spread out, or every page that failed comes back in the same instant.
  const ms = ((refused && error.retryAfterMs) || RETRY_MS) * (0.75 + Math.random() / 2);
  const timer = refused && !error.retryAfterMs ? undefined : setTimeout(again, ms);
  const failed = refused ? error.code : "unreachable";
  const element = el(
    "main.failure",
    { "data-part": "failure", "data-code": failed },
    icon("warn"),
    el("h1", { tabindex: "-1" }, title),
    el("p", {}, text),
    el(
      "div.actions",
      {},
      el("button.primary", { type: "button", onclick: again }, "Try again"),
      el("a.button.quiet", { href: "#/" }, "All events"),
    ),
  );
  return { element, title, failed, hash: location.hash, close: () => clearTimeout(timer) };
}

// The hash belongs to the views, so the skip link moves the focus itself.
document.querySelector("[data-skip]")?.addEventListener("click", (event) => {
  event.preventDefault();
  slot.querySelector("h1")?.focus();
});
document.getElementById("theme")?.append(themeToggle());
const forgets = document.getElementById("forgets");
if (forgets) forgets.hidden = remembers();
addEventListener("hashchange", show);
show();
