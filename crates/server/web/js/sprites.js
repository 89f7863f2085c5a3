// Every look a seat can have, drawn once per scale onto one sheet. Drawing a seat is then one
// copy from the sheet: no paths, no colour changes, and the same picture in every layer.

import { themeColour } from "./theme.js";

export const TINTS = 8;
/** Sprite columns. Free seats come first: tint t is column t, and t + 8 when faded. */
export const LOOK = {
  free: 0,
  faded: TINTS,
  held: TINTS * 2,
  sold: TINTS * 2 + 1,
  blocked: TINTS * 2 + 2,
  own: TINTS * 2 + 3,
  adding: TINTS * 2 + 4,
  dropping: TINTS * 2 + 5,
  booked: TINTS * 2 + 6,
};
const LOOKS = TINTS * 2 + 7;

/** The colours of the present theme, read from the style sheet. */
export function readPalette() {
  return {
    tints: Array.from({ length: TINTS }, (_, t) => themeColour(`--tint-${t}`)),
    floor: themeColour("--map-floor"),
    stage: themeColour("--map-stage"),
    held: themeColour("--seat-held"),
    heldEdge: themeColour("--seat-held-edge"),
    sold: themeColour("--seat-sold"),
    soldMark: themeColour("--seat-sold-mark"),
    own: themeColour("--own"),
    ownInk: themeColour("--own-ink"),
    ink: themeColour("--ink"),
    inkSoft: themeColour("--ink-soft"),
    seatInk: themeColour("--seat-ink"),
    focus: themeColour("--focus"),
    family: getComputedStyle(document.body).fontFamily,
  };
}

/** @typedef {ReturnType<typeof readPalette>} Palette */

export class SpriteSheet {
  /** @param {Palette} palette @param {number} side  Device pixels of a seat's edge. */
  constructor(palette, side) {
    this.side = side;
    this.cell = Math.ceil(side) + 4;
    this.half = this.cell / 2;
    this.canvas = document.createElement("canvas");
    this.canvas.width = this.cell * LOOKS;
    this.canvas.height = this.cell;
    const pen = this.canvas.getContext("2d");
    if (!pen) throw new Error("no 2d canvas");
    for (let t = 0; t < TINTS; t += 1) {
      drawFree(this.cellOf(pen, LOOK.free + t), side, palette.tints[t], 1);
      drawFree(this.cellOf(pen, LOOK.faded + t), side, palette.tints[t], 0.16);
    }
    drawHeld(this.cellOf(pen, LOOK.held), side, palette);
    drawSold(this.cellOf(pen, LOOK.sold), side, palette);
    drawTaken(this.cellOf(pen, LOOK.blocked), side * 0.3, palette.sold);
    drawOwn(this.cellOf(pen, LOOK.own), side, palette.own, palette.ownInk);
    drawAdding(this.cellOf(pen, LOOK.adding), side, palette);
    drawFree(this.cellOf(pen, LOOK.dropping), side, palette.own, 0.35);
    drawOwn(this.cellOf(pen, LOOK.booked), side, palette.ink, palette.floor);
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} look */
  cellOf(pen, look) {
    pen.setTransform(1, 0, 0, 1, this.cell * look + this.half, this.half);
    pen.globalAlpha = 1;
    return pen;
  }

  /** Copies one look so that its middle is at (x, y) device pixels.
   *  @param {CanvasRenderingContext2D} pen @param {number} look @param {number} x @param {number} y */
  draw(pen, look, x, y) {
    const { cell, half } = this;
    let left = x - half;
    let top = y - half;
    // Whole pixels keep big seats crisp; on small ones they would make the rows uneven.
    if (cell > 14) {
      left = Math.round(left);
      top = Math.round(top);
    }
    pen.drawImage(this.canvas, cell * look, 0, cell, cell, left, top, cell, cell);
  }
}

/** A rounded square around the origin.
 *  @param {CanvasRenderingContext2D} pen @param {number} side @param {number} round */
function box(pen, side, round = 0.3) {
  pen.beginPath();
  pen.roundRect(-side / 2, -side / 2, side, side, side * round);
}

/** @param {CanvasRenderingContext2D} pen @param {number} side @param {string} colour @param {number} alpha */
function drawFree(pen, side, colour, alpha) {
  pen.globalAlpha = alpha;
  pen.fillStyle = colour;
  box(pen, side);
  pen.fill();
}

/** Sold and blocked: smaller and flat.
 *  @param {CanvasRenderingContext2D} pen @param {number} side @param {string} colour */
function drawTaken(pen, side, colour) {
  pen.fillStyle = colour;
  box(pen, side, 0.36);
  pen.fill();
}

/** Sold: flat and crossed out. Its form tells it from what is held, as well as its colour.
 *  @param {CanvasRenderingContext2D} pen @param {number} side @param {Palette} palette */
function drawSold(pen, side, palette) {
  drawTaken(pen, side * 0.82, palette.sold);
  if (side < 9) return;
  const reach = side * 0.17;
  pen.strokeStyle = palette.soldMark;
  pen.lineWidth = Math.max(1, side * 0.09);
  pen.lineCap = "round";
  pen.beginPath();
  pen.moveTo(-reach, -reach);
  pen.lineTo(reach, reach);
  pen.moveTo(reach, -reach);
  pen.lineTo(-reach, reach);
  pen.stroke();
}

/** Held by a shopper: a ring, open in the middle, since it may come back.
 *  @param {CanvasRenderingContext2D} pen @param {number} side @param {Palette} palette */
function drawHeld(pen, side, palette) {
  // Of a seat that is a few pixels wide nothing but its edge is left.
  drawTaken(pen, side * 0.9, side < 5 ? palette.heldEdge : palette.held);
  if (side < 5) return;
  pen.strokeStyle = palette.heldEdge;
  pen.lineWidth = Math.max(1, side * 0.13);
  box(pen, side * 0.9 - pen.lineWidth, 0.34);
  pen.stroke();
}

/** Ours: larger than its neighbours, with a tick.
 *  @param {CanvasRenderingContext2D} pen @param {number} side @param {string} colour @param {string} ink */
function drawOwn(pen, side, colour, ink) {
  pen.fillStyle = colour;
  box(pen, side + 2);
  pen.fill();
  if (side < 7) return;
  pen.strokeStyle = ink;
  pen.lineWidth = Math.max(1.2, side * 0.12);
  pen.lineCap = "round";
  pen.lineJoin = "round";
  pen.beginPath();
  pen.moveTo(-side * 0.22, side * 0.02);
  pen.lineTo(-side * 0.06, side * 0.18);
  pen.lineTo(side * 0.23, -side * 0.16);
  pen.stroke();
}

/** Asked for, not answered yet. @param {CanvasRenderingContext2D} pen @param {number} side @param {Palette} palette */
function drawAdding(pen, side, palette) {
  drawFree(pen, side + 2, palette.own, 0.45);
  pen.globalAlpha = 1;
  pen.strokeStyle = palette.own;
  pen.lineWidth = Math.max(1, side * 0.1);
  box(pen, side + 2 - pen.lineWidth);
  pen.stroke();
}
