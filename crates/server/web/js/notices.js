// The cards over the map that speak of something gone wrong, each with the way out of it: what
// was lost and an alternative; a hold that ended and the same again; a request to wait.

import { announce, el, fill, icon } from "./dom.js";
import { plural } from "./format.js";
import { alternativeLabel, endingWords, words } from "./refusal.js";

/** @typedef {import("./holding.js").Holding} Holding */
/** @typedef {import("./plan.js").Plan} Plan */

const ALTERNATIVES_SHOWN = 2;

export class Notices {
  /** @param {Holding} holding @param {Plan} plan @param {(seats: string[]) => void} offer */
  constructor(holding, plan, offer) {
    this.holding = holding;
    this.plan = plan;
    this.offer = offer;
    this.element = el("div.notices", { "data-testid": "notices" });
    this.nameOf = (/** @type {{seat?: string, area?: string}} */ unit) => plan.unitName(unit);
    /** @type {unknown} */ this.shown = null;
    /** @type {ReturnType<typeof setInterval>|undefined} */ this.ticking = undefined;
  }

  refresh() {
    const { refusal, ended, trouble } = this.holding;
    const subject = trouble === "waiting" ? "waiting" : (refusal ?? ended);
    if (subject === this.shown) return;
    this.shown = subject;
    clearInterval(this.ticking);
    this.offer([]);
    if (trouble === "waiting") this.showWaiting();
    else if (refusal) this.showRefusal(refusal);
    else if (ended) this.showEnded(ended);
    else fill(this.element);
  }

  close() {
    clearInterval(this.ticking);
  }

  /** @param {import("./holdworker.js").Refusal} refusal */
  showRefusal({ problem, asked, again }) {
    const { title, text, lost } = words(problem, this.nameOf);
    const alternatives = (problem.alternatives ?? []).slice(0, ALTERNATIVES_SHOWN);
    const buttons = alternatives.map((alternative, k) =>
      el(
        k === 0 ? "button.primary" : "button.quiet",
        {
          type: "button",
          "data-testid": k === 0 ? "refusal-alternative" : `refusal-alternative-${k}`,
          onclick: () => this.holding.take(alternative.units, asked),
        },
        alternativeLabel(alternative, this.nameOf),
        alternative.units.length > 1 && alternative.together && el("small", {}, "together"),
      ),
    );
    if (again) {
      const retry = () => this.holding.want((wanted) => wanted.add(again.requests()));
      buttons.push(el("button.primary", { type: "button", "data-testid": "refusal-retry", onclick: retry }, "Try again"));
    }
    const lines = lost.length > 0 && el("ul", {}, ...lost.map((line) => el("li", {}, line)));
    const attributes = { "data-testid": "refusal", "data-code": problem.code };
    this.show("refusal", title, text, lines, buttons, attributes);
    const seats = alternatives[0]?.units.flatMap((unit) => ("seat" in unit ? [unit.seat] : [])) ?? [];
    this.offer(seats);
    const offered = alternatives.length > 0 ? ` ${alternativeLabel(alternatives[0], this.nameOf)}?` : "";
    announce(`${title}. ${text} ${lost.join(" ")}${offered}`, "urgent");
  }

  /** @param {import("./holdworker.js").Ended} ended */
  showEnded(ended) {
    const { title, text } = endingWords(ended.state);
    const { inventory } = this.holding;
    const free = ended.units.filter((unit) => {
      if (!("seat" in unit)) return (inventory.areas.get(unit.area)?.free ?? 0) >= unit.quantity;
      const seat = this.plan.indexOf.get(unit.seat);
      return seat !== undefined && inventory.state[seat] === 0;
    });
    const again = el("button.primary", { type: "button", "data-testid": "hold-again" });
    again.append(free.length === ended.units.length ? "Hold the same again" : `Hold the ${plural(free.length, "unit")} still free`);
    again.addEventListener("click", () => this.holding.holdAgain(free));
    const gone = free.length === 0 ? "They have been taken meanwhile." : text;
    const attributes = { "data-testid": "ended", "data-state": ended.state };
    this.show("ended", title, gone, false, free.length > 0 ? [again] : [], attributes);
    announce(`${title}. ${gone}`, "urgent");
  }

  showWaiting() {
    const left = el("strong", { "data-testid": "retry-countdown" });
    const tick = () => {
      const ms = this.holding.waitUntil - performance.now();
      left.textContent = plural(Math.max(1, Math.ceil(ms / 1000)), "second");
    };
    tick();
    this.ticking = setInterval(tick, 250);
    const line = el("p", {}, "Trying again by itself in ", left, ". Your choice is kept.");
    const title = "Very busy right now";
    this.show(null, title, "", line, [], { "data-testid": "waiting" });
    announce(`${title}. Trying again by itself.`);
  }

  /**
   * @param {"refusal"|"ended"|null} dismissable @param {string} title @param {string} text
   * @param {Node|false} more @param {HTMLElement[]} buttons @param {Record<string, string>} attributes
   */
  show(dismissable, title, text, more, buttons, attributes) {
    const dismiss = () => dismissable && this.holding.dismiss(dismissable);
    const close =
      dismissable &&
      el("button.icon-button", { type: "button", "aria-label": "Dismiss", "data-testid": "dismiss", onclick: dismiss }, icon("close"));
    const actions = buttons.length > 0 && el("div.actions", {}, ...buttons);
    const body = el("div.notice-body", {}, el("h3", {}, title), text && el("p", {}, text), more, actions);
    fill(this.element, el("section.notice", { "aria-label": title, ...attributes }, icon("warn"), body, close));
  }
}
