// The cards over the map that speak of something gone wrong, each with the way out of it: what
// was lost and an alternative; a hold that ended and the same again; a request to wait.

import { announce, button, el, fill, icon, iconButton, setText } from "./dom.js";
import { plural } from "./format.js";
import { FREE } from "./inventory.js";
import { alternativeName, endingWords, words } from "./refusal.js";
import { saleOf } from "./sale.js";
import { compromise } from "./selectors.js";

/** @typedef {import("./holding.js").Holding} Holding */
/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {NonNullable<import("./state.js").State["ended"]>} Ended */

const ALTERNATIVES_SHOWN = 2;
// The feed shows an expiry a little after its millisecond; until then "taken" would be a guess.
const FREED_WITHIN_MS = 1500;

export class Notices {
  /** @param {Holding} holding @param {Plan} plan @param {(seats: string[], covered: number) => void} offer */
  constructor(holding, plan, offer) {
    this.holding = holding;
    this.plan = plan;
    this.offer = offer;
    this.element = el("div.notices", { "data-part": "notices" });
    this.nameOf = (/** @type {{seat?: string, area?: string}} */ unit) => plan.unitName(unit);
    /** @type {unknown} */ this.shown = null;
    /** A choice of the server that the shopper has looked at. @type {unknown} */ this.accepted = null;
    this.onKey = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape" && !event.defaultPrevented) this.dismiss();
    };
    document.addEventListener("keydown", this.onKey);
    /** @type {ReturnType<typeof setInterval>|undefined} */ this.ticking = undefined;
  }

  refresh() {
    const { refusal, ended, trouble } = this.holding.state;
    const compromise = this.compromise();
    const isWaiting = trouble.kind === "waiting";
    const subject = isWaiting ? "waiting" : (refusal ?? ended ?? compromise);
    if (subject === this.shown) return;
    this.shown = subject;
    clearInterval(this.ticking);
    this.offer([], 0);
    if (isWaiting) this.showWaiting();
    else if (refusal) this.showRefusal(refusal);
    else if (ended) this.showEnded(ended);
    else if (compromise) this.showCompromise(compromise);
    else fill(this.element);
  }

  /** What the seats that the server chose lack, until it was dismissed. */
  compromise() {
    const { state } = this.holding;
    return state.chosen === this.accepted ? "" : compromise(state, this.plan);
  }

  /** The refusal first: it is what is shown of the three. */
  dismiss() {
    const { refusal, ended, chosen } = this.holding.state;
    if (refusal) this.holding.dispatch({ type: "dismiss", what: "refusal" });
    else if (ended) this.holding.dispatch({ type: "dismiss", what: "ended" });
    else {
      this.accepted = chosen;
      this.refresh();
    }
  }

  /** @param {string} text */
  showCompromise(text) {
    const { holding } = this;
    const back = button("secondary", "give-back", "Give them back", () => holding.release());
    this.show(true, "Look before you pay", text, false, [back], { "data-part": "not-as-asked" });
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
    clearInterval(this.ticking);
  }

  /** @param {import("./state.js").Refusal} refusal */
  showRefusal({ problem, asked, again }) {
    const { title, text, lost } = words(problem, this.nameOf);
    const alternatives = (problem.alternatives ?? []).slice(0, ALTERNATIVES_SHOWN);
    const buttons = alternatives.map((alternative, k) =>
      el(
        k === 0 ? "button.primary" : "button.quiet",
        {
          type: "button",
          "data-part": k === 0 ? "refusal-alternative" : `refusal-alternative-${k}`,
          onclick: () => this.holding.dispatch({ type: "swap", drop: asked, add: seatsOf(alternative) }),
        },
        offerText(alternativeName(alternative, this.nameOf), k),
        alternative.units.length > 1 && alternative.together && el("small", {}, "together"),
      ),
    );
    if (again) {
      buttons.push(button("primary", "refusal-retry", "Try again", () => this.holding.dispatch({ type: "again" })));
    }
    const lines = lost.length > 0 && el("ul", {}, ...lost.map((line) => el("li", {}, line)));
    const attributes = { "data-part": "refusal", "data-code": problem.code };
    this.show(true, title, text, lines, buttons, attributes);
    const seats = alternatives.length > 0 ? seatsOf(alternatives[0]) : [];
    this.offer(seats.map(({ seat }) => seat), this.element.offsetHeight + 16);
    const offered =
      alternatives.length > 0
        ? ` ${offerText(alternativeName(alternatives[0], this.nameOf), 0)}?`
        : "";
    announce(`${title}. ${text} ${lost.join(" ")}${offered}`, "urgent");
  }

  /** @param {Ended} ended */
  showEnded(ended) {
    const sells = () => saleOf(this.holding.state.event) === "open";
    const { title, text } = endingWords(ended.state, sells());
    const hold = () => this.holding.dispatch({ type: "swap", drop: [], add: this.stillFree(ended) });
    const again = button("primary", "hold-again", "", hold);
    const about = el("p", {}, text);
    const endedAt = performance.now();
    const update = () => {
      const free = this.stillFree(ended).length;
      again.hidden = free === 0 || !sells();
      const all = free === ended.units.length;
      const left = free === 1 ? "one" : plural(free, this.plan.unitWord);
      const some = `Hold the ${left} still free`;
      setText(again, all ? "Hold the same again" : some);
      const taken = free === 0 && sells() && performance.now() - endedAt > FREED_WITHIN_MS;
      setText(about, taken ? "They have been taken meanwhile." : text);
    };
    update();
    this.ticking = setInterval(update, 250);
    const attributes = { "data-part": "ended", "data-state": ended.state };
    this.show(true, title, "", about, [again], attributes);
    announce(`${title}. ${text}`, "urgent");
  }

  /** Which units of an ended hold could be held again, as the map knows it. */
  stillFree(/** @type {Ended} */ ended) {
    const { inventory } = this.holding;
    return ended.units.filter((unit) => {
      if (!("seat" in unit)) return (inventory.areas.get(unit.area)?.free ?? 0) >= unit.quantity;
      const seat = this.plan.indexOf.get(unit.seat);
      return seat !== undefined && inventory.state[seat] === FREE;
    });
  }

  showWaiting() {
    const left = el("strong", { "data-part": "retry-countdown" });
    const tick = () => {
      const { trouble } = this.holding.state;
      const ms = trouble.kind === "waiting" ? trouble.until - performance.now() : 0;
      left.textContent = plural(Math.max(1, Math.ceil(ms / 1000)), "second");
    };
    tick();
    this.ticking = setInterval(tick, 250);
    const line = el("p", {}, "Trying again by itself in ", left, ". Your choice is kept.");
    const title = "Very busy right now";
    this.show(false, title, "", line, [], { "data-part": "waiting" });
    announce(`${title}. Trying again by itself.`);
  }

  /**
   * @param {boolean} dismissable @param {string} title @param {string} text
   * @param {Node|false} more @param {HTMLElement[]} buttons @param {Record<string, string>} attributes
   */
  show(dismissable, title, text, more, buttons, attributes) {
    const dismiss = () => this.dismiss();
    const part = { "data-part": "dismiss" };
    const close = dismissable && iconButton("button.icon-button", "close", "Dismiss", dismiss, part);
    const actions = buttons.length > 0 && el("div.actions", {}, ...buttons);
    const body = el(
      "div.notice-body",
      {},
      el("h2", {}, title),
      text && el("p", {}, text),
      more,
      actions,
    );
    fill(
      this.element,
      el("section.notice", { "aria-label": title, ...attributes }, icon("warn"), body, close),
    );
  }
}

/** The server offers seats only. @param {import("./wire.js").Alternative} alternative */
function seatsOf({ units }) {
  return units.flatMap(({ seat }) => (seat ? [{ seat }] : []));
}

/** The first offer says what will happen; the second continues the sentence. */
function offerText(/** @type {string} */ name, /** @type {number} */ k) {
  return k === 0 ? `Take ${name} instead` : `or ${name}`;
}
