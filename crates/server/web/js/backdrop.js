// What stands around the seats: the stage, the areas, the names of zones, and the small picture
// of the whole hall that shows where one has zoomed to.

import { left } from "./format.js";
import { FONT_PX, Names, isFar } from "./names.js";

const INSET_PX = 132;
/** Smaller letters cannot be read. */
const READABLE_PX = 9;

/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./sprites.js").Palette} Palette */

export class Backdrop {
  /** @param {import("./plan.js").Plan} plan @param {import("./inventory.js").Inventory} inventory */
  constructor(plan, inventory) {
    this.plan = plan;
    this.inventory = inventory;
    /** Text of each area, made when its counts change and not per frame. @type {Map<string, string>} */
    this.areaNote = new Map();
    /** @type {ReadonlyMap<string, number>} */ this.ownOf = new Map();
    this.names = new Names(plan);
    /** @type {string[]} */ this.fonts = [];
    this.refreshAreas();
  }

  /** @param {ReadonlyMap<string, number>} [own]  Places of each area in our hold. */
  refreshAreas(own) {
    if (own) this.ownOf = own;
    for (const area of this.plan.areas) {
      const counts = this.inventory.areas.get(area.id) ?? { free: 0, held: 0, sold: 0 };
      const mine = this.ownOf.get(area.id) ?? 0;
      const note = left(counts);
      this.areaNote.set(area.id, mine > 0 ? `${mine} yours · ${note}` : note);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {Camera} camera @param {Palette} palette */
  drawBehind(pen, camera, palette) {
    this.drawStage(pen, camera, palette);
    for (const area of this.plan.areas) this.drawArea(pen, camera, palette, area);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Camera} camera @param {Palette} palette */
  drawStage(pen, camera, palette) {
    const { stage } = this.plan;
    const x = camera.toScreenX(stage.x);
    const y = camera.toScreenY(stage.y);
    const width = stage.width * camera.scale;
    const height = stage.height * camera.scale;
    if (height === 0 || y + height * 1.4 < 0) return;
    pen.fillStyle = palette.stage;
    pen.beginPath();
    pen.moveTo(x + width * 0.06, y);
    pen.lineTo(x + width * 0.94, y);
    pen.lineTo(x + width, y + height * 0.72);
    pen.quadraticCurveTo(x + width / 2, y + height * 1.28, x, y + height * 0.72);
    pen.closePath();
    pen.fill();
    const size = Math.min(16, height * 0.4);
    if (size < 6) return;
    pen.fillStyle = palette.inkSoft;
    pen.font = this.font(size, palette);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText("S T A G E", x + width / 2, y + height * 0.52);
  }

  /**
   * @param {CanvasRenderingContext2D} pen @param {Camera} camera @param {Palette} palette
   * @param {import("./plan.js").PlanArea} area
   */
  drawArea(pen, camera, palette, area) {
    const x = camera.toScreenX(area.x);
    const y = camera.toScreenY(area.y);
    const width = area.width * camera.scale;
    const height = area.height * camera.scale;
    const colour = palette.tints[this.plan.categories[area.category]?.tint ?? 0];
    const counts = this.inventory.areas.get(area.id);
    const free = counts?.free ?? 0;
    const own = (this.ownOf.get(area.id) ?? 0) > 0;
    const round = Math.min(14, height * 0.15);
    pen.globalAlpha = free > 0 ? 0.16 : 0.06;
    pen.fillStyle = colour;
    pen.beginPath();
    pen.roundRect(x, y, width, height, round);
    pen.fill();
    pen.globalAlpha = own ? 1 : 0.55;
    pen.strokeStyle = own ? palette.own : colour;
    pen.lineWidth = own ? 2.5 : 1.2;
    pen.stroke();
    this.drawFilling(pen, palette, colour, area, free / Math.max(1, area.capacity), camera);
    pen.globalAlpha = 1;
    this.drawAreaText(pen, palette, area, x + width / 2, y + height / 2, this.textSize(area, camera));
  }

  /** How much is left, as a bar along the lower edge.
   *  @param {CanvasRenderingContext2D} pen @param {Palette} palette @param {string} colour
   *  @param {import("./plan.js").PlanArea} area @param {number} share @param {Camera} camera */
  drawFilling(pen, palette, colour, area, share, camera) {
    const width = area.width * camera.scale - 24;
    const x = camera.toScreenX(area.x) + 12;
    const y = camera.toScreenY(area.y + area.height) - 14;
    if (width < 24 || area.height * camera.scale < 60) return;
    pen.globalAlpha = 0.7;
    pen.fillStyle = palette.sold;
    pen.beginPath();
    pen.roundRect(x, y, width, 4, 2);
    pen.fill();
    pen.globalAlpha = 1;
    pen.fillStyle = colour;
    pen.beginPath();
    pen.roundRect(x, y, Math.max(share > 0 ? 4 : 0, width * share), 4, 2);
    pen.fill();
  }

  /** @param {CanvasRenderingContext2D} pen @param {Palette} palette @param {import("./plan.js").PlanArea} area
   *  @param {number} x @param {number} y @param {number} size */
  drawAreaText(pen, palette, area, x, y, size) {
    if (size < READABLE_PX) return;
    const note = size * 0.72;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = palette.ink;
    pen.font = this.font(size, palette);
    pen.fillText(area.label, x, note < 7 ? y : y - size * 0.55);
    if (note < 7) return;
    pen.fillStyle = palette.inkSoft;
    pen.font = this.font(note, palette);
    pen.fillText(this.areaNote.get(area.id) ?? "", x, y + size * 0.6);
  }

  /** How large the letters within an area may be. */
  textSize(/** @type {import("./plan.js").PlanArea} */ area, /** @type {Camera} */ camera) {
    const { scale } = camera;
    return Math.min(20, (area.width * scale) / (area.label.length * 0.66 + 1), (area.height * scale) / 3);
  }

  /** Names of zones: above them when near, upon them when far away.
   *  @param {CanvasRenderingContext2D} pen @param {Camera} camera @param {Palette} palette */
  drawNames(pen, camera, palette) {
    const { zones, areas } = this.plan;
    const seat = this.plan.seatSide * camera.scale;
    const font = this.font(FONT_PX, palette);
    const isNamed = (/** @type {number} */ a) => this.textSize(areas[a], camera) >= READABLE_PX;
    this.names.draw(pen, camera, palette, { seat, font, isNamed });
    if (zones.length < 2) return;
    pen.font = this.font(Math.max(READABLE_PX, Math.min(15, seat * 0.62)), palette);
    pen.fillStyle = palette.inkSoft;
    for (const zone of zones) if (!isFar(zone, seat)) this.drawName(pen, camera, zone);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Camera} camera @param {import("./plan.js").PlanZone} zone */
  drawName(pen, camera, zone) {
    if (zone.firstRow === zone.endRow || !zone.clear) return;
    const x = camera.toScreenX(zone.x);
    const y = camera.toScreenY(zone.y);
    if (x < -60 || y < -20 || x > camera.width + 60 || y > camera.height + 20) return;
    pen.fillText(zone.name, x, y + 0.5);
  }

  /**
   * @param {CanvasRenderingContext2D} pen @param {Camera} camera @param {Palette} palette
   * @param {import("./layer.js").Side} overview
   */
  drawInset(pen, camera, palette, overview) {
    if (camera.width < 520) return;
    const { left, top, right, bottom } = this.plan.bounds;
    const scale = INSET_PX / Math.max(right - left, bottom - top);
    const width = (right - left) * scale;
    const height = (bottom - top) * scale;
    const x = 16;
    const y = camera.height - height - 16;
    pen.globalAlpha = 0.92;
    pen.fillStyle = palette.floor;
    pen.strokeStyle = palette.stage;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.roundRect(x - 6, y - 6, width + 12, height + 12, 10);
    pen.fill();
    pen.stroke();
    pen.globalAlpha = 1;
    const { canvas, frame } = overview;
    pen.drawImage(
      canvas,
      x + (frame.x - left) * scale,
      y + (frame.y - top) * scale,
      (frame.width / frame.scale) * scale,
      (frame.height / frame.scale) * scale,
    );
    const x0 = Math.max(x - 3, x + (camera.toChartX(0) - left) * scale);
    const y0 = Math.max(y - 3, y + (camera.toChartY(0) - top) * scale);
    const x1 = Math.min(x + width + 3, x + (camera.toChartX(camera.width) - left) * scale);
    const y1 = Math.min(y + height + 3, y + (camera.toChartY(camera.height) - top) * scale);
    pen.strokeStyle = palette.own;
    pen.lineWidth = 2;
    pen.strokeRect(x0, y0, x1 - x0, y1 - y0);
  }

  /** @param {number} size @param {Palette} palette */
  font(size, palette) {
    const px = Math.round(size);
    this.fonts[px] ??= `650 ${px}px ${palette.family}`;
    return this.fonts[px];
  }
}
