// The map for keyboards and screen readers: a grid whose cells are the seats, one of them in the
// tab order. A hall may have 50,000 seats, so only the rows around the focused seat exist as
// elements; `aria-rowindex` says where they stand. The canvas draws the same seat's focus ring.

import { el, setText } from "./dom.js";

/** @typedef {import("./plan.js").Plan} Plan */
/** @typedef {import("./plan.js").Direction} Direction */

/** @type {Record<string, Direction>} */
const ARROWS = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };

/**
 * @typedef {object} SeatGridTarget
 * @property {(seat: number) => string} describe  "Row A seat 12, Standard, 45.00 EUR, free".
 * @property {(seat: number) => boolean} isOwn
 * @property {(seat: number) => boolean} isFree
 * @property {(seat: number) => void} toggle
 * @property {(seat: number) => void} focused  -1 when focus has left the grid.
 * @property {(action: "in"|"out"|"fit") => void} zoom
 */

export class SeatGrid {
  /** @param {Plan} plan @param {SeatGridTarget} target */
  constructor(plan, target) {
    this.plan = plan;
    this.target = target;
    this.seat = 0;
    this.row = -1;
    /** @type {Map<number, HTMLElement>} */ this.cells = new Map();
    this.element = el("div.seat-grid", {
      role: "grid",
      "aria-label": "Seats",
      "aria-describedby": "seat-grid-help",
      "aria-multiselectable": "true",
      "aria-rowcount": plan.rows.length,
      "data-part": "seat-grid",
    });
    this.element.addEventListener("keydown", (e) => this.key(e));
    this.element.addEventListener("click", (e) => this.click(e));
    this.element.addEventListener("focusin", (e) => this.focusIn(e));
    this.element.addEventListener("focusout", (e) => this.focusOut(e));
    if (plan.size > 0) this.show(0);
  }

  get hasFocus() {
    return this.element.contains(document.activeElement);
  }

  /** Makes a seat the one in the tab order, without taking the focus. @param {number} seat */
  show(seat) {
    this.cells.get(this.seat)?.setAttribute("tabindex", "-1");
    this.seat = seat;
    const row = this.plan.rowOf[seat];
    if (row !== this.row) this.renderRows(row);
    this.cells.get(seat)?.setAttribute("tabindex", "0");
  }

  /** @param {number} seat */
  focus(seat) {
    this.show(seat);
    this.cells.get(seat)?.focus({ preventScroll: true });
  }

  /** The row of the focused seat and one on either side. @param {number} middle */
  renderRows(middle) {
    const hadFocus = this.hasFocus;
    this.row = middle;
    this.cells.clear();
    const last = this.plan.rows.length - 1;
    const rows = [];
    for (let r = Math.max(0, middle - 1); r <= Math.min(last, middle + 1); r += 1) {
      rows.push(this.renderRow(r));
    }
    this.element.replaceChildren(...rows);
    if (hadFocus) this.cells.get(this.seat)?.focus({ preventScroll: true });
  }

  /** @param {number} r */
  renderRow(r) {
    const { label, first, end } = this.plan.rows[r];
    const zone = this.plan.zoneNameOf(first);
    const row = el("div", {
      role: "row",
      "aria-rowindex": r + 1,
      "aria-label": [zone, label && `Row ${label}`].filter(Boolean).join(", ") || null,
    });
    for (let seat = first; seat < end; seat += 1) {
      const cell = el("span", {
        role: "gridcell",
        tabindex: "-1",
        "data-seat": this.plan.ids[seat],
      });
      this.cells.set(seat, cell);
      this.describe(seat);
      row.append(cell);
    }
    return row;
  }

  /** @param {number} seat */
  describe(seat) {
    const cell = this.cells.get(seat);
    if (!cell) return;
    const text = this.target.describe(seat);
    if (cell.getAttribute("aria-label") !== text) cell.setAttribute("aria-label", text);
    cell.setAttribute("aria-selected", String(this.target.isOwn(seat)));
    setText(cell, this.plan.labels[seat]);
  }

  /** After a change that may concern any of the shown seats. */
  refresh() {
    for (const seat of this.cells.keys()) this.describe(seat);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    // With Ctrl all else is the browser's: its zoom, its tabs.
    const isMove = event.key in ARROWS || event.key === "Home" || event.key === "End";
    if (event.altKey || event.metaKey || (event.ctrlKey && !isMove)) return;
    const goal = this.goalOf(event);
    if (goal !== undefined) {
      event.preventDefault();
      if (goal >= 0) this.focus(goal);
      return;
    }
    const act = this.actionOf(event.key);
    if (!act) return;
    event.preventDefault();
    // A key that is kept down chooses once, not again and again.
    const isChoice = event.key === "Enter" || event.key === " ";
    if (!(isChoice && event.repeat)) act();
  }

  /** The seat a key leads to; -1 where there is none, undefined if it is no key of ours. */
  goalOf(/** @type {KeyboardEvent} */ event) {
    const { plan, seat } = this;
    const row = plan.rows[plan.rowOf[seat]];
    const arrow = ARROWS[event.key];
    // In chart order with Ctrl: reaches every seat, however the hall is bent.
    if (arrow && event.ctrlKey) {
      const next = seat + (arrow === "left" || arrow === "up" ? -1 : 1);
      return next < plan.size ? next : -1;
    }
    if (arrow) return plan.neighbour(seat, arrow);
    switch (event.key) {
      case "Home":
        return event.ctrlKey ? 0 : row.first;
      case "End":
        return event.ctrlKey ? plan.size - 1 : row.end - 1;
      case "PageUp":
        return this.zoneStart(row.zone - 1);
      case "PageDown":
        return this.zoneStart(row.zone + 1);
      case "n":
      case "N":
        return this.nextFree();
      default:
        return undefined;
    }
  }

  /** @param {number} z */
  zoneStart(z) {
    const zone = this.plan.zones[z];
    return zone && zone.endRow > zone.firstRow ? this.plan.rows[zone.firstRow].first : -1;
  }

  nextFree() {
    const { size } = this.plan;
    for (let k = 1; k < size; k += 1) {
      const seat = (this.seat + k) % size;
      if (this.target.isFree(seat)) return seat;
    }
    return -1;
  }

  /** @param {string} key */
  actionOf(key) {
    const { target } = this;
    /** @type {Record<string, () => void>} */
    const actions = {
      Enter: () => target.toggle(this.seat),
      " ": () => target.toggle(this.seat),
      "+": () => target.zoom("in"),
      "=": () => target.zoom("in"),
      "-": () => target.zoom("out"),
      0: () => target.zoom("fit"),
    };
    return actions[key];
  }

  /** Screen readers press cells by a click of their own. @param {MouseEvent} event */
  click(event) {
    const seat = this.seatOf(event.target);
    if (seat === undefined) return;
    this.show(seat);
    this.target.toggle(seat);
  }

  /** @param {FocusEvent} event */
  focusIn(event) {
    const seat = this.seatOf(event.target);
    if (seat === undefined) return;
    if (seat !== this.seat) this.show(seat);
    this.target.focused(seat);
  }

  /** @param {FocusEvent} event */
  focusOut(event) {
    if (!this.element.contains(/** @type {Node|null} */ (event.relatedTarget))) {
      this.target.focused(-1);
    }
  }

  /** @param {EventTarget|null} target */
  seatOf(target) {
    const cell = target instanceof Element ? target.closest("[data-seat]") : null;
    return this.plan.indexOf.get(cell?.getAttribute("data-seat") ?? "");
  }
}
