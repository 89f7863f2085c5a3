// A picture of a part of the hall at one scale. It is drawn in slices that fit into a frame,
// on a second canvas that is swapped in when it is whole; and it is redrawn seat by seat when a
// state changes, so that a frame never has to draw the hall.

import { BLOCKED, FREE, HELD, SOLD } from "./inventory.js";
import { LOOK, SpriteSheet } from "./sprites.js";

const CLOCK_EVERY = 192;
const LABEL_FROM_PX = 15;
const TEXT_FROM_PX = 6;
const DOT_PX = 6;
// A layer is whole within a second, in which far fewer seats change; but while the page is hidden nothing is drawn.
const MISSED_MAX = 4096;

/** @typedef {{x: number, y: number, width: number, height: number, scale: number}} Frame  Chart
 *  position of the top left corner, size in device pixels, device pixels per chart unit. */

export class Layer {
  /**
   * @param {import("./plan.js").Plan} plan
   * @param {import("./inventory.js").Inventory} inventory
   * @param {boolean} labelled  Whether seats and rows carry their labels.
   */
  constructor(plan, inventory, labelled) {
    this.plan = plan;
    this.inventory = inventory;
    this.labelled = labelled;
    this.list = new Uint32Array(plan.size);
    this.near = new Uint32Array(plan.size);
    this.emphasis = -1;
    this.front = newSide();
    this.back = newSide();
    this.ready = false;
    this.building = false;
    this.found = 0;
    this.drawn = 0;
    // Seats that changed while the next side is drawn: redrawn once it is whole, because a seat
    // drawn twice has other edges than a seat drawn once.
    this.missed = new Uint32Array(MISSED_MAX);
    this.missedCount = 0;
    /** @type {import("./sprites.js").Palette|null} */ this.palette = null;
  }

  /** @param {Frame} frame @param {import("./sprites.js").Palette} palette @param {number} pixelRatio */
  begin(frame, palette, pixelRatio) {
    const { back, plan } = this;
    this.palette = palette;
    Object.assign(back.frame, frame);
    back.ratio = pixelRatio;
    const side = frame.scale * plan.seatSide;
    // From far away the gaps would swallow the colours: tiny seats nearly touch.
    back.sheet = this.sheetFor(side < DOT_PX ? side * 1.2 : side, palette);
    if (back.canvas.width !== frame.width || back.canvas.height !== frame.height) {
      back.canvas.width = frame.width;
      back.canvas.height = frame.height;
    } else {
      back.pen.clearRect(0, 0, frame.width, frame.height);
    }
    const margin = plan.seatSide;
    this.found = plan.buckets.collect(
      frame.x - margin,
      frame.y - margin,
      frame.x + frame.width / frame.scale + margin,
      frame.y + frame.height / frame.scale + margin,
      this.list,
    );
    this.drawn = 0;
    this.missedCount = 0;
    this.building = true;
  }

  /** @param {number} side @param {import("./sprites.js").Palette} palette */
  sheetFor(side, palette) {
    for (const half of [this.front, this.back]) {
      const { sheet } = half;
      if (sheet && sheet.side === side && half.palette === palette) return sheet;
    }
    this.back.palette = palette;
    return new SpriteSheet(palette, side);
  }

  /** Draws until `deadline`; answers whether the layer is whole. @param {number} deadline */
  step(deadline) {
    if (!this.building) return true;
    // More than is remembered: what is drawn already is not known to be true any more.
    if (this.missedCount > MISSED_MAX && this.palette) this.begin(this.back.frame, this.palette, this.back.ratio);
    while (this.drawn < this.found) {
      const end = Math.min(this.drawn + CLOCK_EVERY, this.found);
      for (let k = this.drawn; k < end; k += 1) this.drawSeat(this.back, this.list[k]);
      this.drawn = end;
      if (end < this.found && performance.now() > deadline) return false;
    }
    if (this.labelled) this.drawRowLabels(this.back);
    [this.front, this.back] = [this.back, this.front];
    this.front.palette = this.palette;
    this.building = false;
    this.ready = true;
    for (let k = 0; k < this.missedCount; k += 1) this.mendSide(this.front, this.missed[k]);
    return true;
  }

  /** Redraws the surroundings of one seat. @param {number} seat */
  redraw(seat) {
    if (this.ready) this.mendSide(this.front, seat);
    if (!this.building) return;
    if (this.missedCount < MISSED_MAX) this.missed[this.missedCount] = seat;
    this.missedCount += 1;
  }

  /** @param {Side} side @param {number} seat */
  mendSide(side, seat) {
    const { frame, pen, sheet } = side;
    if (!sheet) return;
    const reach = sheet.half + 1;
    const x = (this.plan.xs[seat] - frame.x) * frame.scale;
    const y = (this.plan.ys[seat] - frame.y) * frame.scale;
    if (x < -reach || y < -reach || x > frame.width + reach || y > frame.height + reach) return;
    const left = Math.floor(x - reach);
    const top = Math.floor(y - reach);
    const size = Math.ceil(reach * 2) + 1;
    // All that reaches into the cleared square is drawn again, clipped to it: exact edges.
    pen.save();
    pen.beginPath();
    pen.rect(left, top, size, size);
    pen.clip();
    pen.clearRect(left, top, size, size);
    const around = (size + sheet.half) / frame.scale;
    const found = this.plan.buckets.collect(
      this.plan.xs[seat] - around,
      this.plan.ys[seat] - around,
      this.plan.xs[seat] + around,
      this.plan.ys[seat] + around,
      this.near,
    );
    for (let k = 0; k < found; k += 1) this.drawSeat(side, this.near[k]);
    pen.restore();
  }

  /** @param {Side} side @param {number} seat */
  drawSeat(side, seat) {
    const { frame, pen, sheet } = side;
    if (!sheet) return;
    const x = (this.plan.xs[seat] - frame.x) * frame.scale;
    const y = (this.plan.ys[seat] - frame.y) * frame.scale;
    const look = this.lookOf(seat);
    sheet.draw(pen, look, x, y);
    const px = sheet.side / side.ratio;
    if (!this.labelled || px < LABEL_FROM_PX || look >= LOOK.faded || !this.palette) return;
    const text = this.plan.labels[seat];
    const size = sheet.side * Math.min(0.42, 1.4 / text.length);
    if (size / side.ratio < TEXT_FROM_PX) return;
    pen.font = side.font(size, this.palette.family);
    pen.fillStyle = this.palette.seatInk;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(text, Math.round(x), Math.round(y) + sheet.side * 0.03);
  }

  /** @param {number} seat */
  lookOf(seat) {
    const category = this.plan.category[seat];
    switch (this.inventory.state[seat]) {
      case FREE: {
        const faded = this.emphasis >= 0 && this.emphasis !== category;
        return (faded ? LOOK.faded : LOOK.free) + this.plan.categories[category].tint;
      }
      case HELD:
        return LOOK.held;
      case SOLD:
        return LOOK.sold;
      case BLOCKED:
        return LOOK.blocked;
      default:
        throw new Error("no such state");
    }
  }

  /** @param {Side} side */
  drawRowLabels(side) {
    const { frame, pen, sheet } = side;
    if (!sheet || !this.palette || sheet.side / side.ratio < 9) return;
    pen.font = side.font(Math.min(sheet.side * 0.5, 13 * side.ratio), this.palette.family);
    pen.fillStyle = this.palette.inkSoft;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const label of this.plan.rowLabels) {
      const x = (label.x - frame.x) * frame.scale;
      const y = (label.y - frame.y) * frame.scale;
      if (x < -20 || y < -20 || x > frame.width + 20 || y > frame.height + 20) continue;
      pen.fillText(label.text, x, y);
    }
  }

  /** Whether the shown side covers a rectangle of the chart.
   *  @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 @param {Side} side */
  covers(x0, y0, x1, y1, side = this.front) {
    const { frame } = side;
    return (
      x0 >= frame.x - 0.01 &&
      y0 >= frame.y - 0.01 &&
      x1 <= frame.x + frame.width / frame.scale + 0.01 &&
      y1 <= frame.y + frame.height / frame.scale + 0.01
    );
  }
}

/** @typedef {ReturnType<typeof newSide>} Side */

function newSide() {
  const canvas = document.createElement("canvas");
  canvas.width = 1;
  canvas.height = 1;
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("no 2d canvas");
  /** @type {string[]} */
  const fonts = [];
  return {
    canvas,
    pen,
    frame: { x: 0, y: 0, width: 1, height: 1, scale: 1 },
    ratio: 1,
    /** @type {SpriteSheet|null} */ sheet: null,
    /** @type {import("./sprites.js").Palette|null} */ palette: null,
    /** Font strings are built once per size. @param {number} size @param {string} family */
    font(size, family) {
      const px = Math.max(1, Math.round(size));
      fonts[px] ??= `600 ${px}px ${family}`;
      return fonts[px];
    },
  };
}
