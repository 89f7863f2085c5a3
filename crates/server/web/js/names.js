// The names of zones and areas while the whole hall is looked at: upon what they name, in letters
// that can be read, none upon another. From near, zones and areas are named where they are drawn.

export const FONT_PX = 11;
/** Smaller seats are no surroundings for a name above them; nor are those if others lie there. */
const FAR_PX = 7;
const MIDDLE_PX = 14;
const LINE_PX = 14;
const PAD_PX = 6;
const EDGE_PX = 4;
/** Where a name is tried, in its own heights below the middle of what it names. */
const PLACES = [0, 1, -1, 2, -2, 3, -3];

/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./sprites.js").Palette} Palette */

/** @typedef {{lines: string[], width: number}} Layout */

/** One name and where it was drawn last. */
class Name {
  /** @param {string} text @param {number} x @param {number} y @param {number} room  In chart units. */
  constructor(text, x, y, room) {
    this.text = text;
    this.x = x;
    this.y = y;
    this.room = room;
    /** In one line, and in two if it has two words. @type {Layout[]} */
    this.layouts = [];
    /** @type {string[]} */ this.lines = [];
    this.box = { left: 0, top: 0, width: 0, height: 0 };
    this.shown = false;
  }

  /** @param {CanvasRenderingContext2D} pen */
  measure(pen) {
    if (this.layouts.length > 0) return;
    const layout = (/** @type {string[]} */ ...lines) => ({
      lines,
      width: Math.max(...lines.map((line) => pen.measureText(line).width)) + 2 * PAD_PX,
    });
    const words = this.text.split(" ");
    const cuts = words.slice(1).map((_, k) => layout(words.slice(0, k + 1).join(" "), words.slice(k + 1).join(" ")));
    cuts.sort((a, b) => a.width - b.width);
    this.layouts = [layout(this.text), ...cuts.slice(0, 1)];
  }

  /** @param {Camera} camera @param {Name[]} placed */
  place(camera, placed) {
    this.shown = false;
    const x = camera.toScreenX(this.x);
    const y = camera.toScreenY(this.y);
    const half = (this.room * camera.scale) / 2;
    if (x < -half || x > camera.width + half || y < 0 || y > camera.height) return;
    // What is narrower than its name in one line is covered less by two.
    const [one, two] = this.layouts;
    const first = two && 2 * half < one.width ? two : one;
    for (const step of PLACES) {
      if (this.fits(camera, placed, first, x, y, step)) return;
    }
  }

  /**
   * @param {Camera} camera @param {Name[]} placed @param {Layout} layout
   * @param {number} x @param {number} y @param {number} step
   */
  fits(camera, placed, layout, x, y, step) {
    const { box } = this;
    box.width = layout.width;
    box.height = layout.lines.length * LINE_PX + EDGE_PX;
    const right = camera.width - box.width - EDGE_PX;
    box.left = Math.max(EDGE_PX, Math.min(right, x - box.width / 2));
    box.top = y + step * box.height - box.height / 2;
    const inside = box.top >= EDGE_PX && box.top + box.height <= camera.height - EDGE_PX;
    this.lines = layout.lines;
    this.shown = inside && !placed.some((other) => other.shown && overlap(box, other.box));
    return this.shown;
  }

  /** @param {CanvasRenderingContext2D} pen @param {Palette} palette */
  draw(pen, palette) {
    const { left, top, width, height } = this.box;
    pen.globalAlpha = 0.86;
    pen.fillStyle = palette.floor;
    pen.beginPath();
    pen.roundRect(left, top, width, height, 8);
    pen.fill();
    pen.globalAlpha = 1;
    pen.fillStyle = palette.ink;
    this.lines.forEach((line, l) => {
      pen.fillText(line, left + width / 2, top + EDGE_PX / 2 + (l + 0.5) * LINE_PX + 0.5);
    });
  }
}

/** @typedef {Name["box"]} Box */
/** @param {Box} a @param {Box} b */
const overlap = (a, b) =>
  a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;

export class Names {
  /** @param {import("./plan.js").Plan} plan */
  constructor(plan) {
    const zones = plan.zones.length < 2 ? [] : plan.zones.filter((zone) => zone.firstRow < zone.endRow);
    this.areas = plan.areas.map(
      ({ label, x, y, width, height }) => new Name(label, x + width / 2, y + height / 2, width),
    );
    this.plain = zones;
    this.zones = zones.map(({ name, x, middle, width }) => new Name(name, x, middle, width));
    this.all = [...this.areas, ...this.zones];
  }

  /**
   * Draws the names of the areas that are too small for their own text, and of zones from afar.
   * @param {CanvasRenderingContext2D} pen @param {Camera} camera @param {Palette} palette
   * @param {{seat: number, font: string, isNamed: (area: number) => boolean}} look
   */
  draw(pen, camera, palette, { seat, font, isNamed }) {
    pen.font = font;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const name of this.all) name.shown = false;
    const draw = (/** @type {Name} */ name) => {
      name.measure(pen);
      name.place(camera, this.all);
      if (name.shown) name.draw(pen, palette);
    };
    this.areas.forEach((name, a) => isNamed(a) || draw(name));
    this.zones.forEach((name, z) => isFar(this.plain[z], seat) && draw(name));
  }

  /** What was drawn last, for tests. */
  shown() {
    return this.all
      .filter((name) => name.shown)
      .map(({ text, box }) => ({ text, ...box }));
  }
}

/**
 * Whether a zone is named upon its seats, of so many pixels, and not above them.
 * @param {import("./plan.js").PlanZone} zone @param {number} seat
 */
export const isFar = (zone, seat) => seat < (zone.clear ? FAR_PX : MIDDLE_PX);
