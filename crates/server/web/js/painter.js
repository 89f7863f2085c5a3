// Draws the map: one frame only when something changed. The seats come from two prepared layers
// (a coarse one of the whole hall, a sharp one of what is in view); a frame copies them and adds
// the few things that move: own seats, rings, flashes. Frames allocate nothing.

import { Backdrop } from "./backdrop.js";
import { reducedMotion } from "./dom.js";
import { Layer } from "./layer.js";
import { Rows } from "./rows.js";
import { LOOK, SpriteSheet, readPalette } from "./sprites.js";

const SLICE_MS = 4;
const SETTLE_MS = 90;
const MARGIN = 0.3;
const OVERVIEW_PX = 1400;
const FLASH_MS = 620;
const FLASHES = 96;
// Emphasised where nothing is: all categories are faded.
const NO_CATEGORY = 1000;

/** @typedef {import("./camera.js").Camera} Camera */

export class Painter {
  /**
   * @param {HTMLCanvasElement} canvas @param {import("./plan.js").Plan} plan
   * @param {import("./inventory.js").Inventory} inventory @param {Camera} camera
   */
  constructor(canvas, plan, inventory, camera) {
    this.canvas = canvas;
    this.plan = plan;
    this.inventory = inventory;
    this.camera = camera;
    const pen = canvas.getContext("2d", { alpha: false });
    if (!pen) throw new Error("no 2d canvas");
    this.pen = pen;
    this.ratio = 1;
    this.palette = readPalette();
    this.overview = new Layer(plan, inventory, false);
    this.detail = new Layer(plan, inventory, true);
    this.backdrop = new Backdrop(plan, inventory);
    this.rows = new Rows(plan);
    this.goal = { x: 0, y: 0, width: 1, height: 1, scale: 1 };
    this.detailStale = true;
    this.overviewStale = true;
    /** @type {SpriteSheet|null} */ this.sheet = null;
    /** Seats drawn above the layers, with their look. @type {Map<number, number>} */
    this.marked = new Map();
    /** @type {Set<number>} */ this.offered = new Set();
    this.emphasis = -1;
    this.open = true;
    this.focused = -1;
    this.hovered = -1;
    this.dimmed = false;
    this.flashSeat = new Int32Array(FLASHES).fill(-1);
    this.flashAt = new Float64Array(FLASHES);
    this.nextFlash = 0;
    this.flashUntil = 0;
    this.scheduled = 0;
    this.frame = this.frame.bind(this);
  }

  /** @param {number} width @param {number} height */
  resize(width, height) {
    this.ratio = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.camera.resize(width, height);
    this.redrawAll();
  }

  /** The theme changed, or the emphasised category: every seat looks different. */
  redrawAll() {
    this.palette = readPalette();
    this.sheet = null;
    this.detailStale = true;
    this.overviewStale = true;
    this.request();
  }

  /** @param {number} category  -1 for none. */
  emphasise(category) {
    this.emphasis = category;
    this.fade();
  }

  /** @param {boolean} open  Whether anything is on sale: else every free seat is faded. */
  showOpen(open) {
    this.open = open;
    this.fade();
  }

  fade() {
    const emphasis = this.open ? this.emphasis : NO_CATEGORY;
    this.overview.emphasis = emphasis;
    this.detail.emphasis = emphasis;
    this.redrawAll();
  }

  /** A seat changed its state. @param {number} seat @param {boolean} flash */
  redraw(seat, flash) {
    this.overview.redraw(seat);
    this.detail.redraw(seat);
    if (flash && !reducedMotion.matches && !this.marked.has(seat)) {
      this.flashSeat[this.nextFlash] = seat;
      this.flashAt[this.nextFlash] = performance.now();
      this.flashUntil = this.flashAt[this.nextFlash] + FLASH_MS;
      this.nextFlash = (this.nextFlash + 1) % FLASHES;
    }
    this.request();
  }

  request() {
    if (this.scheduled === 0) this.scheduled = requestAnimationFrame(this.frame);
  }

  stop() {
    cancelAnimationFrame(this.scheduled);
    this.scheduled = -1;
  }

  /** @param {number} now */
  frame(now) {
    if (this.scheduled === -1) return;
    this.scheduled = 0;
    const startedAt = performance.now();
    this.camera.tick(now);
    this.prepareLayers(startedAt);
    this.draw(startedAt);
    const busy =
      this.camera.gliding ||
      this.overview.building ||
      this.detail.building ||
      this.detailStale ||
      startedAt < this.flashUntil;
    if (busy) this.request();
  }

  /** @param {number} startedAt */
  prepareLayers(startedAt) {
    const { overview, detail, plan } = this;
    const deadline = startedAt + SLICE_MS;
    if (this.overviewStale) {
      const { left, top, right, bottom } = plan.bounds;
      const scale = OVERVIEW_PX / Math.max(right - left, bottom - top);
      const goal = this.goalFrame(left, top, right, bottom, Math.min(scale, 12 / plan.pitch));
      overview.begin(goal, this.palette, 1);
      this.overviewStale = false;
    }
    if (this.wantsDetail(startedAt)) {
      const { camera } = this;
      const overX = (camera.width / camera.scale) * (0.5 + MARGIN);
      const overY = (camera.height / camera.scale) * (0.5 + MARGIN);
      const goal = this.goalFrame(
        Math.max(plan.bounds.left, camera.x - overX),
        Math.max(plan.bounds.top, camera.y - overY),
        Math.min(plan.bounds.right, camera.x + overX),
        Math.min(plan.bounds.bottom, camera.y + overY),
        camera.scale * this.ratio,
      );
      detail.begin(goal, this.palette, this.ratio);
      this.detailStale = false;
    }
    // The sharp layer first: it is what the shopper looks at.
    if (detail.step(deadline)) overview.step(deadline);
  }

  /** @param {number} left @param {number} top @param {number} right @param {number} bottom @param {number} scale */
  goalFrame(left, top, right, bottom, scale) {
    const { goal } = this;
    goal.scale = scale;
    // Aligned to whole device pixels, so that panning by pixels keeps the picture sharp.
    goal.x = Math.floor(left * scale) / scale;
    goal.y = Math.floor(top * scale) / scale;
    goal.width = Math.max(1, Math.ceil((right - goal.x) * scale));
    goal.height = Math.max(1, Math.ceil((bottom - goal.y) * scale));
    return goal;
  }

  /** A sharp layer is drawn when the view has come to rest, or has left the present one. */
  wantsDetail(/** @type {number} */ now) {
    const { camera, detail } = this;
    const scale = camera.scale * this.ratio;
    if (this.detailStale && !detail.ready) return true;
    const building = detail.building ? detail.back : detail.front;
    const sharp = Math.abs(building.frame.scale / scale - 1) < 1e-4;
    const covering = this.coversView(building);
    if (!this.detailStale && sharp && covering) return false;
    const near = building.frame.scale / scale;
    const usable = covering && near > 0.6 && near < 1.7;
    const resting = !camera.gliding && now - camera.movedAt > SETTLE_MS;
    if (detail.building && usable && !resting) return false;
    this.detailStale = true;
    return resting || !usable;
  }

  /** @param {import("./layer.js").Side} side */
  coversView(side) {
    const { camera, detail } = this;
    const { left, top, right, bottom } = this.plan.bounds;
    return detail.covers(
      Math.max(left, camera.toChartX(0)),
      Math.max(top, camera.toChartY(0)),
      Math.min(right, camera.toChartX(camera.width)),
      Math.min(bottom, camera.toChartY(camera.height)),
      side,
    );
  }

  /** @param {number} now */
  draw(now) {
    const { pen, camera, ratio, detail, overview } = this;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.globalAlpha = 1;
    pen.fillStyle = this.palette.floor;
    pen.fillRect(0, 0, camera.width, camera.height);
    this.backdrop.drawBehind(pen, camera, this.palette);
    const complete = detail.ready && this.coversView(detail.front);
    // Many seats take a while to draw; until then the rows show where they are.
    if (!complete && overview.ready) this.copy(overview.front);
    else if (!complete) this.rows.drawBars(pen, camera, this.palette);
    if (detail.ready) this.copy(detail.front);
    this.drawFlashes(now);
    this.drawMarked();
    this.backdrop.drawNames(pen, camera, this.palette);
    this.rows.drawPins(pen, camera, this.palette);
    if (camera.scale > camera.fitScale * 1.5 && overview.ready) {
      this.backdrop.drawInset(pen, camera, this.palette, overview.front);
    }
  }

  /** @param {import("./layer.js").Side} side */
  copy({ canvas, frame }) {
    const { pen, camera } = this;
    const stretch = camera.scale / frame.scale;
    const x = camera.toScreenX(frame.x);
    const y = camera.toScreenY(frame.y);
    const sharp = Math.abs(stretch * this.ratio - 1) < 1e-4;
    pen.imageSmoothingEnabled = !sharp;
    pen.drawImage(
      canvas,
      sharp ? Math.round(x * this.ratio) / this.ratio : x,
      sharp ? Math.round(y * this.ratio) / this.ratio : y,
      frame.width * stretch,
      frame.height * stretch,
    );
    pen.imageSmoothingEnabled = true;
  }

  drawMarked() {
    const { pen, camera, ratio, plan } = this;
    const side = Math.max(5, plan.seatSide * camera.scale * ratio);
    if (!this.sheet || Math.abs(this.sheet.side - side) > 0.01) {
      // While the scale glides, a sheet per frame would be waste: own seats are few, so the sheet
      // is only remade when the scale has moved by a pixel or come to rest.
      const close = this.sheet && Math.abs(this.sheet.side - side) < 1 && camera.gliding;
      if (!close) this.sheet = new SpriteSheet(this.palette, side);
    }
    if (!this.sheet) return;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    for (const [seat, look] of this.marked) {
      const x = camera.toScreenX(plan.xs[seat]) * ratio;
      const y = camera.toScreenY(plan.ys[seat]) * ratio;
      this.sheet.draw(pen, look, x, y);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const seat of this.offered) this.ring(seat, this.palette.own, 2.5, 3);
    if (this.hovered >= 0) this.ring(this.hovered, this.palette.ink, 1.5, 2);
    if (this.focused >= 0) this.ring(this.focused, this.palette.focus, 3, 4);
  }

  /** @param {number} seat @param {string} colour @param {number} width @param {number} gap */
  ring(seat, colour, width, gap) {
    const { pen, camera, plan } = this;
    const side = Math.max(6, plan.seatSide * camera.scale) + gap * 2;
    const x = camera.toScreenX(plan.xs[seat]) - side / 2;
    const y = camera.toScreenY(plan.ys[seat]) - side / 2;
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.roundRect(x, y, side, side, side * 0.3);
    pen.stroke();
  }

  /** A brief ring where another shopper's choice changed a seat. @param {number} now */
  drawFlashes(now) {
    if (now > this.flashUntil) return;
    const { pen, camera, plan } = this;
    const side = plan.seatSide * camera.scale;
    pen.strokeStyle = this.palette.inkSoft;
    pen.lineWidth = 1.5;
    for (let f = 0; f < FLASHES; f += 1) {
      const age = (now - this.flashAt[f]) / FLASH_MS;
      if (this.flashSeat[f] < 0 || age >= 1) continue;
      const x = camera.toScreenX(plan.xs[this.flashSeat[f]]);
      const y = camera.toScreenY(plan.ys[this.flashSeat[f]]);
      if (x < 0 || y < 0 || x > camera.width || y > camera.height) continue;
      pen.globalAlpha = (1 - age) * 0.7;
      pen.beginPath();
      pen.arc(x, y, side * 0.5 + age * Math.max(6, side * 0.4), 0, 7);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }
}

export { LOOK };
