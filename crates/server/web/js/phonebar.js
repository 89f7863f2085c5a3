// On a phone the hold stands below the map. This bar keeps its sum and its time in sight, and
// leads to it; it steps aside once the hold itself is to be seen.

import { el, reveal, setText } from "./dom.js";

export class PhoneBar {
  /** @param {import("./holdpanel.js").HoldPanel} panel */
  constructor(panel) {
    this.panel = panel;
    this.inUse = false;
    this.panelSeen = false;
    this.sum = el("span");
    this.time = el("span.time");
    this.element = el(
      "button.phone-bar",
      { type: "button", "data-part": "phone-bar", hidden: true },
      this.sum,
      el("span.go", {}, this.time, "Review"),
    );
    this.element.addEventListener("click", () => {
      reveal(panel.element);
      panel.focus();
    });
    // In sight means above the bar's own place: the whole button, or the first of the cards.
    const enough = new Map([
      [panel.confirm, 0.9],
      [panel.pay.element, 0.2],
    ]);
    const seen = new Set();
    this.observer = new IntersectionObserver(
      (entries) => {
        for (const { target, intersectionRatio } of entries) {
          const part = /** @type {HTMLElement} */ (target);
          if (intersectionRatio >= (enough.get(part) ?? 1)) seen.add(part);
          else seen.delete(part);
        }
        this.panelSeen = seen.size > 0;
        this.show();
      },
      { threshold: [...enough.values()], rootMargin: "0px 0px -76px 0px" },
    );
    for (const part of enough.keys()) this.observer.observe(part);
    this.ticking = setInterval(() => this.tick(), 250);
  }

  close() {
    this.observer.disconnect();
    clearInterval(this.ticking);
  }

  /** @param {boolean} inUse */
  refresh(inUse) {
    this.inUse = inUse;
    if (inUse) setText(this.sum, this.panel.summary());
    this.show();
  }

  show() {
    this.element.hidden = !this.inUse || this.panelSeen;
  }

  tick() {
    if (!this.element.hidden) setText(this.time, this.panel.time.textContent ?? "");
  }
}
