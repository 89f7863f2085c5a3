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
      { type: "button", "data-testid": "phone-bar", hidden: true },
      this.sum,
      el("span.go", {}, this.time, "Review"),
    );
    this.element.addEventListener("click", () => {
      reveal(panel.element);
      panel.confirm.focus({ preventScroll: true });
    });
    // In sight means above the bar's own place.
    this.observer = new IntersectionObserver(
      ([entry]) => {
        this.panelSeen = entry.isIntersecting;
        this.show();
      },
      { threshold: 0.9, rootMargin: "0px 0px -76px 0px" },
    );
    this.observer.observe(panel.confirm);
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
