// Says how well the page is connected: whether the map is live, and whether a choice has not
// reached the server yet. Quiet when all is well, unmistakable when not.

import { announce, el, setText } from "./dom.js";

/** @typedef {"live"|"connecting"|"polling"|"lost"|"unsent"} Standing */

/** @type {Record<Standing, {short: string, long: string}>} */
const WORDS = {
  live: { short: "Live", long: "" },
  connecting: { short: "Connecting…", long: "" },
  polling: {
    short: "Reconnecting…",
    long: "Live updates are interrupted; the map refreshes every few seconds.",
  },
  lost: {
    short: "Connection lost",
    long: "The map may be out of date. Reconnecting by itself; what you hold is kept.",
  },
  unsent: {
    short: "Not sent yet",
    long: "No answer from the server. Your choice is kept and sent again by itself.",
  },
};
// A hiccup shorter than this is healed before the shopper could read about it.
const GRACE_MS = 900;

/** @param {import("./feed.js").Feed} feed @param {import("./holding.js").Holding} holding */
export function connectionPill(feed, holding) {
  const short = el("span");
  const long = el("span.long");
  const element = el(
    "p.connection",
    { role: "status", "data-part": "connection-state", "data-state": "connecting" },
    el("span.dot", { "aria-hidden": "true" }),
    short,
    long,
  );
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let grace;
  let wasBad = false;

  /** @returns {Standing} */
  const standing = () => (holding.state.trouble.kind === "unsent" ? "unsent" : feed.state);

  const show = () => {
    grace = undefined;
    const now = standing();
    const { short: brief, long: explanation } = WORDS[now];
    element.dataset.state = now;
    setText(short, brief);
    setText(long, explanation);
    const bad = explanation !== "";
    if (wasBad && now === "live") announce("Connected again. The map is up to date.");
    if (bad) wasBad = true;
    else if (now === "live") wasBad = false;
  };

  const refresh = () => {
    const good = WORDS[standing()].long === "";
    if (good) {
      clearTimeout(grace);
      show();
    } else if (grace === undefined && element.dataset.state !== standing()) {
      grace = setTimeout(show, GRACE_MS);
    }
  };
  feed.addEventListener("state", refresh);
  refresh();
  return { element, refresh, close: () => clearTimeout(grace) };
}
