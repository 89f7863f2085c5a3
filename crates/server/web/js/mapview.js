// The seat map as a whole: canvas, the grid for keyboards behind it, zoom buttons, the tooltip.
// Translates points and keys into seats, and what is held or wanted into looks.

import { heldIn } from "./basket.js";
import { Camera } from "./camera.js";
import { announce, el, iconButton, setText } from "./dom.js";
import { money, spokenMoney } from "./format.js";
import { Gestures } from "./gestures.js";
import { FREE, SOLD, STATE_NAMES } from "./inventory.js";
import { LOOK, Painter } from "./painter.js";
import { SeatGrid } from "./seatgrid.js";
import { watchTheme } from "./theme.js";

// A seat smaller than this is looked at, not hit: a tap there goes nearer first.
const HIT_PX = { mouse: 7, touch: 13 };
/** A finger may miss what is smaller (WCAG 2.2, 2.5.8): there the first touch only names the seat. */
const TARGET_PX = 24;
const NEARER_PX = { mouse: 26, touch: 31 };
// Below this width (as in narrow.css) the controls lie along the top instead of the side.
const NARROW = matchMedia("(max-width: 56.2em)");
const CONTROLS_PX = 62;
const KEYS = "Arrows move · Enter holds · N next free · + − 0 zoom";
const HELP =
  "Arrow keys move among seats, Enter holds or gives back. Page up and page down change the zone, N goes to the next free seat, plus and minus zoom, 0 shows the whole hall.";

/** @typedef {import("./holding.js").Holding} Holding */

export class MapView {
  /**
   * @param {import("./plan.js").Plan} plan @param {import("./inventory.js").Inventory} inventory
   * @param {Holding} holding @param {(area: string) => void} chooseArea
   */
  constructor(plan, inventory, holding, chooseArea) {
    this.plan = plan;
    this.inventory = inventory;
    this.holding = holding;
    this.chooseArea = chooseArea;
    /** @type {Set<string>} */ this.booked = new Set();
    /** A seat that was named to a finger, and is taken by the next touch. */
    this.asking = -1;
    /** Whether the sale is open. */ this.open = true;
    this.canvas = /** @type {HTMLCanvasElement} */ (
      el("canvas.seat-map", { "data-part": "seat-map", "aria-hidden": "true" })
    );
    this.camera = new Camera(plan.bounds, plan.pitch);
    this.painter = new Painter(this.canvas, plan, inventory, this.camera);
    this.grid = new SeatGrid(plan, this.gridTarget());
    this.keySeat = el("strong");
    this.tip = el("div.tip", { "aria-hidden": "true", "data-part": "tip", hidden: true });
    this.element = el(
      "div.map",
      { role: "region", "aria-label": "Seat map" },
      this.canvas,
      this.grid.element,
      el("p.visually-hidden", { id: "seat-grid-help" }, HELP),
      el("div.key-hint", { "aria-hidden": "true" }, this.keySeat, el("span", {}, KEYS)),
      this.zoomButtons(),
      this.tip,
    );
    new Gestures(this.canvas, this.camera, this.gestureTarget());
    inventory.onSeat = (seat) => this.painter.redraw(seat, !this.isWanted(seat));
    inventory.onMany = () => this.painter.redrawAll();
    this.unwatchTheme = watchTheme(() => this.painter.redrawAll());
    this.sizer = new ResizeObserver(() => this.resize());
    this.sizer.observe(this.element);
  }

  close() {
    this.sizer.disconnect();
    this.unwatchTheme();
    this.painter.stop();
  }

  /** @param {boolean} open */
  showSale(open) {
    this.open = open;
    this.painter.showOpen(open);
  }

  resize() {
    const { width, height } = this.element.getBoundingClientRect();
    const narrow = NARROW.matches;
    this.camera.inset.top = narrow ? CONTROLS_PX : 0;
    this.camera.inset.right = narrow ? 0 : CONTROLS_PX;
    if (width > 0 && height > 0) this.painter.resize(width, height);
  }

  zoomButtons() {
    /** @param {"plus"|"minus"|"fit"} glyph @param {string} label @param {() => void} act */
    const button = (glyph, label, act) =>
      iconButton("button", glyph, label, act, { title: label, "data-part": `zoom-${glyph}` });
    return el(
      "div.zoom",
      { role: "group", "aria-label": "Zoom" },
      button("plus", "Zoom in", () => this.zoom("in")),
      button("minus", "Zoom out", () => this.zoom("out")),
      button("fit", "Show the whole hall", () => this.zoom("fit")),
    );
  }

  /** @param {"in"|"out"|"fit"} action */
  zoom(action) {
    if (action === "fit") this.camera.glideToFit();
    else this.camera.glideZoom(action === "in" ? 1.6 : 1 / 1.6);
    this.painter.request();
  }

  /** @returns {import("./gestures.js").GestureTarget} */
  gestureTarget() {
    return {
      moved: () => {
        this.hideTip();
        this.painter.request();
      },
      tapped: (x, y, touch) => this.tapped(x, y, touch),
      hovered: (x, y) => this.hovered(x, y),
      left: () => this.hideTip(),
    };
  }

  /** @returns {import("./seatgrid.js").SeatGridTarget} */
  gridTarget() {
    return {
      describe: (seat) => this.describe(seat),
      isOwn: (seat) => this.isWanted(seat),
      isFree: (seat) => this.inventory.state[seat] === FREE && !this.isWanted(seat),
      toggle: (seat) => this.toggle(seat),
      zoom: (action) => this.zoom(action),
      focused: (seat) => {
        this.painter.focused = seat;
        this.element.classList.toggle("grid-focus", seat >= 0);
        if (seat >= 0) this.bringIntoView(seat);
        if (seat >= 0) setText(this.keySeat, this.describe(seat));
        this.painter.request();
      },
    };
  }

  /** @param {number} seat @param {number} [covered]  Pixels at the lower edge. */
  bringIntoView(seat, covered = 0) {
    const readable = (NEARER_PX.mouse * 0.7) / this.plan.pitch;
    this.camera.keepInView(this.plan.xs[seat], this.plan.ys[seat], readable, 56, covered);
    this.painter.request();
  }

  /** @param {number} x @param {number} y */
  seatAt(x, y) {
    const reach = this.plan.pitch * 0.62;
    return this.plan.buckets.nearest(this.camera.toChartX(x), this.camera.toChartY(y), reach);
  }

  /** @param {number} x @param {number} y @param {boolean} touch */
  tapped(x, y, touch) {
    const seat = this.seatAt(x, y);
    const side = this.plan.seatSide * this.camera.scale;
    if (seat >= 0 && side >= (touch ? HIT_PX.touch : HIT_PX.mouse)) {
      this.grid.show(seat);
      const named = !this.tip.hidden && this.painter.hovered === seat;
      this.asking = touch && !named && side < TARGET_PX ? seat : -1;
      if (this.asking < 0) this.toggle(seat);
      else this.painter.request();
      // A finger hovers over nothing: the label tells which seat was meant, and what became of it.
      this.painter.hovered = seat;
      this.showTip(seat);
      return;
    }
    this.hideTip();
    const area = this.areaAt(x, y);
    if (area) this.chooseArea(area.id);
    else if (seat >= 0 || side < HIT_PX.mouse) this.goNearer(x, y, touch);
  }

  /** @param {number} x @param {number} y @param {boolean} touch */
  goNearer(x, y, touch) {
    const pitch = touch ? NEARER_PX.touch : NEARER_PX.mouse;
    const scale = Math.max(this.camera.scale * 2.4, pitch / this.plan.pitch);
    this.camera.glide(this.camera.toChartX(x), this.camera.toChartY(y), scale);
    this.painter.request();
  }

  /** @param {number} x @param {number} y */
  areaAt(x, y) {
    const cx = this.camera.toChartX(x);
    const cy = this.camera.toChartY(y);
    return this.plan.areas.find(
      (area) =>
        cx >= area.x && cy >= area.y && cx <= area.x + area.width && cy <= area.y + area.height,
    );
  }

  /** @param {number} x @param {number} y */
  hovered(x, y) {
    const seat = this.seatAt(x, y);
    const area = seat < 0 && this.areaAt(x, y);
    this.canvas.classList.toggle("over-unit", seat >= 0 || Boolean(area));
    if (seat === this.painter.hovered) return;
    this.painter.hovered = seat;
    this.painter.request();
    if (seat < 0) this.tip.hidden = true;
    else this.showTip(seat);
  }

  /** @param {number} seat */
  showTip(seat) {
    const { plan, camera } = this;
    const category = plan.categories[plan.category[seat]];
    const kind = plan.kindOf(seat);
    this.tip.replaceChildren(
      el("strong", {}, plan.nameOf(seat)),
      el("span", {}, `${kind.join(" · ")} · ${money(category.price, this.holding.state.event.currency)}`),
      el("em", {}, this.asking === seat ? this.touchAgain(seat) : this.standing(seat)),
    );
    this.tip.hidden = false;
    const { width, height } = this.tip.getBoundingClientRect();
    const gap = (plan.seatSide * camera.scale) / 2 + 10;
    const x = camera.toScreenX(plan.xs[seat]) - width / 2;
    const above = camera.toScreenY(plan.ys[seat]) - gap - height;
    const y = above > 8 ? above : camera.toScreenY(plan.ys[seat]) + gap;
    const left = Math.max(8, Math.min(camera.width - width - 8, x));
    this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(y)}px)`;
  }

  /** @param {number} seat */
  touchAgain(seat) {
    if (this.isWanted(seat)) return "touch again to give it back";
    return this.open && this.inventory.state[seat] === FREE ? "touch again to hold it" : this.standing(seat);
  }

  hideTip() {
    this.tip.hidden = true;
    this.asking = -1;
    if (this.painter.hovered < 0) return;
    this.painter.hovered = -1;
    this.painter.request();
  }

  /** @param {number} seat */
  toggle(seat) {
    const id = this.plan.ids[seat];
    const own = this.isWanted(seat);
    if (!own && this.inventory.state[seat] !== FREE) {
      announce(`${this.plan.nameOf(seat)} is ${this.standing(seat)}.`);
      return;
    }
    this.holding.dispatch({ type: "toggle", seat: id });
  }

  /** @param {number} seat */
  isWanted(seat) {
    return this.holding.state.wanted.seats.has(this.plan.ids[seat]);
  }

  /** @param {number} seat */
  standing(seat) {
    const id = this.plan.ids[seat];
    const { state } = this.holding;
    if (state.wanted.seats.has(id)) {
      return heldIn(state).seats.has(id) ? "held by you" : "being held for you";
    }
    if (this.booked.has(id) && this.inventory.state[seat] === SOLD) return "booked by you";
    const said = STATE_NAMES[this.inventory.state[seat]];
    if (said === "free" && !this.open) return "not on sale";
    return said === "held"
      ? "held by somebody else for now"
      : said === "blocked"
        ? "not for sale"
        : said;
  }

  /** "Row A seat 12, Standard, 45.00 EUR, free" @param {number} seat */
  describe(seat) {
    const { plan } = this;
    const category = plan.categories[plan.category[seat]];
    const price = spokenMoney(category.price, this.holding.state.event.currency);
    return [plan.nameOf(seat), ...plan.kindOf(seat), price, this.standing(seat)].join(", ");
  }

  /** What is held, wanted or booked has changed. */
  refreshLooks() {
    const { marked } = this.painter;
    const { wanted } = this.holding.state;
    const held = heldIn(this.holding.state);
    const look = (/** @type {string} */ id, /** @type {number} */ value) => {
      const seat = this.plan.indexOf.get(id);
      if (seat !== undefined) marked.set(seat, value);
    };
    marked.clear();
    for (const id of this.booked) {
      const seat = this.plan.indexOf.get(id);
      // Cancelled meanwhile, perhaps in another window.
      if (seat !== undefined && this.inventory.state[seat] === SOLD) look(id, LOOK.booked);
    }
    for (const id of held.seats) look(id, wanted.seats.has(id) ? LOOK.own : LOOK.dropping);
    for (const id of wanted.seats) if (!held.seats.has(id)) look(id, LOOK.adding);
    this.painter.backdrop.refreshAreas(held.areas);
    this.grid.refresh();
    if (this.painter.focused >= 0) setText(this.keySeat, this.describe(this.painter.focused));
    if (this.painter.hovered >= 0 && !this.tip.hidden) this.showTip(this.painter.hovered);
    this.painter.request();
  }

  /** Seats offered in the place of lost ones are ringed, and shown next to the notice. */
  offer(/** @type {string[]} */ ids, /** @type {number} */ covered) {
    const seats = ids.map((id) => this.plan.indexOf.get(id)).filter((seat) => seat !== undefined);
    this.painter.offered = new Set(seats);
    if (seats.length > 0) this.bringIntoView(seats[0], covered);
    this.painter.request();
  }
}
