// The part of the hold's card where it is paid: which card, what the bank asks, what is waited for,
// and the way back to the seats. Says only what the server has said.

import { clock } from "./clock.js";
import { announce, button, el, fill } from "./dom.js";
import { money, roughly } from "./format.js";
import { lateWords } from "./ticket.js";

/** @typedef {import("./holding.js").Holding} Holding */

const ELSEWHERE = "These seats are being paid in another window.";

export class PayPanel {
  /** @param {Holding} holding */
  constructor(holding) {
    this.holding = holding;
    this.shown = "";
    /** The end of the hold that a payment was left with. */ this.leftUntil = "";
    this.element = el("div.pay", { "data-part": "payment" });
    this.element.hidden = true;
  }

  /** Whether it stands in the place of the hold's own buttons. */
  get open() {
    return this.holding.state.payment !== null;
  }

  refresh() {
    const { payment, task, hold } = this.holding.state;
    const stage = payment?.stage ?? "";
    this.element.hidden = !this.open;
    this.element.dataset.stage = stage;
    const busy = task !== null;
    const subject = `${stage}/${busy}/${hold?.total ?? ""}`;
    if (!this.open) this.wasLeft(hold);
    if (!this.open || subject === this.shown) return;
    const before = this.shown.split("/")[0];
    const { activeElement } = document;
    const isFree = !activeElement || activeElement === document.body;
    const mayFocus = isFree || before === "" || this.element.contains(activeElement);
    this.shown = subject;
    fill(this.element, ...this.parts(stage, busy));
    if (before !== stage) this.say(stage);
    // What the stage says, and no button: a key that is still pressed must not choose anything.
    if (mayFocus) this.focus();
  }

  /** Tells the time that is left when the seats come back from a payment that was not made.
   *  @param {import("./wire.js").Hold|null} hold */
  wasLeft(hold) {
    // Before it is read again, it still has the time of the payment.
    if (this.shown === "" || hold?.state === "pinned") return;
    this.shown = "";
    if (!hold) return;
    this.leftUntil = hold.expires_at;
    announce(`The seats are still yours, for ${roughly(clock.until(hold.expires_at))}.`);
  }

  focus() {
    /** @type {HTMLElement|null} */ (this.element.querySelector("[tabindex]"))?.focus({
      preventScroll: true,
    });
  }

  /** @param {string} stage @param {boolean} busy @returns {(HTMLElement|false)[]} */
  parts(stage, busy) {
    switch (stage) {
      case "choose":
        return [...this.cards(busy), this.back(busy)];
      case "again":
        return [
          el(
            "p.pay-note.bad",
            { "data-part": "declined", tabindex: "-1" },
            el("strong", {}, "The payment did not go through. "),
            "Nothing was charged, and the seats are still yours: take another card.",
          ),
          ...this.cards(busy),
          this.back(busy),
        ];
      case "bank":
        return [this.bankPage(busy), this.back(busy)];
      case "silent":
        return [
          waiting("The bank has not answered yet."),
          el(
            "p.hint",
            { "data-part": "silent" },
            "This can take a while, and goes on by itself: also if you close this page. ",
            "An answer may come too late. ",
            lateWords(this.holding.state.event),
          ),
          this.back(busy),
        ];
      case "elsewhere":
        return [waiting(ELSEWHERE), this.back(busy)];
      default:
        return [waiting("Asking the bank…"), this.back(busy)];
    }
  }

  /** @param {boolean} busy */
  cards(busy) {
    const { demo_cards: cards } = this.holding.state.payments;
    if (cards.length === 0) return [waiting(ELSEWHERE)];
    const cardButton = (/** @type {import("./wire.js").DemoCard} */ { card, name, about }) =>
      el(
        "button.test-card",
        {
          type: "button",
          "data-part": `card-${card}`,
          disabled: busy,
          onclick: () => this.holding.press({ kind: "charge", card }),
        },
        el(`span.chip.chip-${card}`, { "aria-hidden": "true" }),
        el("span.what", {}, el("strong", {}, name), el("small", {}, about)),
      );
    const items = cards.map((card) => el("li", {}, cardButton(card)));
    return [
      el("h3", { tabindex: "-1" }, "Pay with a test card"),
      this.holding.state.payment?.stage !== "again" &&
        el("p.hint", {}, "No real money moves. Each card shows what a bank may do."),
      el("ul.test-cards", {}, ...items),
    ];
  }

  /** @param {boolean} busy */
  bankPage(busy) {
    const { hold, event } = this.holding.state;
    const sum = money(hold?.total ?? 0, event.currency);
    return el(
      "section.bank",
      { "data-part": "bank", "aria-label": "Your bank" },
      el("small.bank-name", {}, "Your bank · 3-D Secure"),
      el("h3", { tabindex: "-1" }, `Are you paying ${sum}?`),
      el(
        "div.actions",
        {},
        button("primary", "bank-yes", "Yes, it is me", () => this.holding.press({ kind: "prove", ok: true }), busy),
        button("secondary", "bank-no", "No", () => this.holding.press({ kind: "prove", ok: false }), busy),
      ),
    );
  }

  /** @param {boolean} busy */
  back(busy) {
    return button("quiet", "abandon", "Back to the seats", () => this.holding.press({ kind: "abandon" }), busy);
  }

  /** @param {string} stage */
  say(stage) {
    const { hold, event } = this.holding.state;
    const sum = money(hold?.total ?? 0, event.currency);
    /** @type {Record<string, string>} */
    const words = {
      choose: `Payment has begun: ${sum}. No one else can take the seats meanwhile.`,
      again: "The payment did not go through. Nothing was charged, and the seats are still yours.",
      bank: `Your bank asks: are you paying ${sum}?`,
      silent: "The bank has not answered yet. This goes on by itself.",
      charging: "Asking the bank.",
      elsewhere: ELSEWHERE,
    };
    announce(words[stage] ?? "", stage === "again" || stage === "bank" ? "urgent" : "polite");
  }
}

/** @param {string} text */
function waiting(text) {
  return el("p.pay-wait", { tabindex: "-1" }, el("span.spinner", { "aria-hidden": "true" }), text);
}
