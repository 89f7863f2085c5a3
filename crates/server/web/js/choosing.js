// The ways to choose other than the map itself: the legend (which also picks out one category), "best
// N together", and the areas by quantity.

import { heldIn } from "./basket.js";
import { amend, announce, el, icon, iconButton, reveal, setText, setWaiting } from "./dom.js";
import { count, left as leftIn, money, plural, spokenMoney } from "./format.js";
import { compromise, mustGiveBackFirst } from "./selectors.js";

const INSTEAD = "Takes the place of the seats you hold now.";
const TOO_MANY = "With the seats you hold now that would be too many: give them back first.";

/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {import("./inventory.js").Inventory} Inventory */
/** @typedef {import("./holding.js").Holding} Holding */

export class Legend {
  /**
   * @param {Plan} plan @param {Inventory} inventory @param {string} currency
   * @param {(category: number) => void} emphasise  -1 for none.
   */
  constructor(plan, inventory, currency, emphasise) {
    this.plan = plan;
    this.inventory = inventory;
    this.emphasised = -1;
    this.emphasise = emphasise;
    this.left = plan.categories.map(() => el("span.left"));
    this.buttons = plan.categories.map((category, c) =>
      el(
        "button.category",
        {
          type: "button",
          "aria-pressed": "false",
          "data-part": `category-${category.name}`,
          title: "Pick out on the map",
          onclick: () => this.pick(c),
        },
        el(`span.swatch.tint-${category.tint}`, { "aria-hidden": "true" }),
        el("span.name", {}, category.name),
        this.left[c],
        el("span.price", {}, money(category.price, currency)),
      ),
    );
    this.booked = el("li", {}, el("span.swatch.kind-booked"), "booked by you");
    const kinds = [
      ["own", "yours"],
      ["held", "held by others"],
      ["sold", "sold"],
    ].map(([kind, name]) => el("li", {}, el(`span.swatch.kind-${kind}`), name));
    this.element = el(
      "section.card.legend",
      { "aria-label": "Categories and prices", "data-part": "legend" },
      ...this.buttons,
      el("ul.kinds", {}, ...kinds, this.booked),
    );
  }

  /** @param {number} c */
  pick(c) {
    this.emphasised = this.emphasised === c ? -1 : c;
    this.buttons.forEach((button, k) =>
      button.setAttribute("aria-pressed", String(k === this.emphasised)),
    );
    this.emphasise(this.emphasised);
  }

  /** @param {boolean} anyBooked */
  refresh(anyBooked) {
    this.booked.hidden = !anyBooked;
    this.plan.categories.forEach((_, c) => {
      const counts = this.inventory.countsOf(c);
      setText(this.left[c], leftIn(counts));
      this.buttons[c].classList.toggle("gone", counts.free === 0);
    });
  }
}

export class BestTogether {
  /**
   * @param {Plan} plan @param {Holding} holding
   * @param {(seat: number) => void} show  Brings a seat into view.
   */
  constructor(plan, holding, show) {
    this.plan = plan;
    this.holding = holding;
    this.show = show;
    this.quantity = Math.min(2, this.max);
    this.stepper = stepper({
      id: "best",
      label: "How many together",
      changed: (quantity) => {
        this.quantity = Math.max(1, Math.min(this.max, quantity));
        this.refresh();
      },
    });
    const seated = plan.categories.filter((_, c) => plan.category.includes(c));
    this.category = /** @type {HTMLSelectElement} */ (
      el(
        "select",
        { "aria-label": "Category", "data-part": "best-category" },
        el("option", { value: "" }, "Any category"),
        ...seated.map(({ name }) => el("option", { value: name }, name)),
      )
    );
    this.button = /** @type {HTMLButtonElement} */ (
      el("button.secondary", {
        type: "button",
        "data-part": "best-together",
        onclick: () => this.ask(),
      })
    );
    this.hint = el("p.hint");
    this.element = el(
      "section.card.best",
      { "aria-label": "Best seats together" },
      el("h2", { tabindex: "-1" }, "Let us choose"),
      el("div.best-row", {}, this.stepper.element, seated.length > 1 && this.category),
      this.button,
      this.hint,
    );
    this.element.hidden = plan.size === 0;
    /** Whether the sale is open. */ this.open = true;
    /** The choice of the server that was shown. */ this.shown = holding.state.chosen;
  }

  /** Seats of one hold, as the event allows them now; more than ten are not side by side anywhere. */
  get max() {
    return Math.min(this.holding.state.event.policy.units_per_hold_max, 10);
  }

  ask() {
    this.holding.press({ kind: "best", quantity: this.quantity, category: this.category.value || null });
  }

  /** Shows what the server has chosen, once. */
  showChosen() {
    const { state } = this.holding;
    if (state.chosen === this.shown) return;
    this.shown = state.chosen;
    const seats = [...(state.chosen?.units.seats ?? [])];
    const first = this.plan.indexOf.get(seats[0] ?? "");
    if (first !== undefined) this.show(first);
    const names = seats.map((seat) => this.plan.unitName({ seat })).join(", ");
    announce(`Held for you: ${names}. ${compromise(state, this.plan)}`);
  }

  refresh() {
    this.showChosen();
    const { task, hold } = this.holding.state;
    this.quantity = Math.min(this.quantity, this.max);
    const busy = task?.kind === "best";
    const isTooMany = !busy && mustGiveBackFirst(this.holding.state, this.quantity);
    this.button.disabled = task?.kind === "confirm" || !this.open || isTooMany;
    setWaiting(this.button, busy);
    const text =
      this.quantity === 1 ? "Hold the best seat" : `Hold the best ${this.quantity} together`;
    amend(this.button, icon("pair"), busy ? "Looking…" : text);
    this.stepper.set(this.quantity, 1, this.max);
    setText(this.hint, isTooMany ? TOO_MANY : INSTEAD);
    this.hint.hidden = !hold && !isTooMany;
  }
}

export class Areas {
  /** @param {Plan} plan @param {Inventory} inventory @param {Holding} holding */
  constructor(plan, inventory, holding) {
    this.plan = plan;
    this.inventory = inventory;
    this.holding = holding;
    this.rows = plan.areas.map((area) => this.row(area));
    this.element = el(
      "section.card.areas",
      { "aria-label": "Areas" },
      el("h2", { tabindex: "-1" }, "Areas"),
      ...this.rows.map((row) => row.element),
    );
    this.element.hidden = plan.areas.length === 0;
    /** Whether the sale is open. */ this.open = true;
  }

  /** @param {import("./plan.js").PlanArea} area */
  row(area) {
    const category = this.plan.categories[area.category];
    const { currency } = this.holding.state.event;
    const control = stepper({
      id: `area-${area.id}`,
      label: `${area.label}, ${category.name}, ${spokenMoney(category.price, currency)} each`,
      changed: (quantity) => this.holding.dispatch({ type: "area", area: area.id, quantity }),
    });
    const left = el("span.left", { "data-part": `area-${area.id}-free` });
    const swatch = el(`span.swatch.tint-${category.tint}`, { "aria-hidden": "true" });
    const kind = category.name === area.label ? "" : `${category.name} · `;
    const name = el(
      "div.area-name",
      {},
      el("strong", {}, area.label),
      el("span", {}, kind + money(category.price, currency), " · ", left),
    );
    const element = el(
      "div.area",
      { "data-part": `area-${area.id}` },
      swatch,
      name,
      control.element,
    );
    return { area, control, left, element, max: 0 };
  }

  /** The map was tapped there: shows where its quantity is chosen. @param {string} id */
  point(id) {
    const row = this.rows.find(({ area }) => area.id === id);
    if (!row) return;
    reveal(row.element);
    row.element.classList.remove("pointed");
    requestAnimationFrame(() => row.element.classList.add("pointed"));
    row.control.focus();
  }

  refresh() {
    const { wanted, task, payment } = this.holding.state;
    const held = heldIn(this.holding.state);
    const isBuying = task?.kind === "confirm" || task?.kind === "pay" || (payment && task);
    for (const row of this.rows) {
      const { area, control, left, element } = row;
      const counts = this.inventory.areas.get(area.id) ?? { free: 0, held: 0, sold: 0 };
      const own = wanted.quantity(area.id);
      const pending = own - held.quantity(area.id);
      setText(left, leftIn(counts));
      // What is under way may be counted already, or not yet: until it is answered the bound stays.
      if (pending === 0) row.max = own + counts.free;
      control.set(own, isBuying ? own : 0, this.open && !isBuying ? Math.max(own, row.max) : own);
      element.classList.toggle("own", own > 0);
      element.classList.toggle("pending", pending !== 0);
    }
  }
}

/**
 * A quantity between two buttons.
 * @param {{id: string, label: string, changed: (quantity: number) => void}} options
 */
function stepper({ id, label, changed }) {
  let value = 0;
  const bounds = { min: 0, max: 0 };
  // Its changes are announced with their unit, once.
  const output = el("output", { "aria-live": "off", "data-part": `${id}-quantity` }, "0");
  /** @param {"plus"|"minus"} glyph @param {string} verb @param {number} by */
  const button = (glyph, verb, by) =>
    iconButton("button", glyph, `${verb}: ${label}`, () => press(by), { "data-part": `${id}-${glyph}` });
  const press = (/** @type {number} */ by) => {
    if (value + by < bounds.min || value + by > bounds.max) return;
    // At once: the next press may come before the page is refreshed.
    value += by;
    changed(value);
    announce(plural(value, "place"));
  };
  const minus = button("minus", "One less", -1);
  const plus = button("plus", "One more", 1);
  const element = el("div.stepper", { role: "group", "aria-label": label }, minus, output, plus);
  return {
    element,
    focus: () => plus.focus({ preventScroll: true }),
    /** @param {number} now @param {number} min @param {number} max */
    set(now, min, max) {
      value = now;
      Object.assign(bounds, { min, max });
      setText(output, count(now));
      setWaiting(minus, now <= min);
      setWaiting(plus, now >= max);
    },
  };
}
