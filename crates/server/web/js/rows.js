// The rows of a plan as a whole: where each one lies, its letter at the edge of the view when its own
// is out of sight, and a bar in its place until its seats are drawn.

/** @typedef {import("./camera.js").Camera} Camera */
/** @typedef {import("./sprites.js").Palette} Palette */

// Smaller seats than this are an overview, in which no shopper looks for a letter.
const PIN_FROM_PX = 14;
const PIN_PX = 20;

export class Rows {
  /** @param {import("./plan.js").Plan} plan */
  constructor(plan) {
    this.plan = plan;
    const { length } = plan.rows;
    this.left = new Float32Array(length).fill(Infinity);
    this.right = new Float32Array(length).fill(-Infinity);
    this.top = new Float32Array(length).fill(Infinity);
    this.bottom = new Float32Array(length).fill(-Infinity);
    for (let seat = 0; seat < plan.size; seat += 1) {
      const r = plan.rowOf[seat];
      this.left[r] = Math.min(this.left[r], plan.xs[seat]);
      this.right[r] = Math.max(this.right[r], plan.xs[seat]);
      this.top[r] = Math.min(this.top[r], plan.ys[seat]);
      this.bottom[r] = Math.max(this.bottom[r], plan.ys[seat]);
    }
    /** The letters that the last frame pinned. @type {string[]} */ this.pinned = [];
  }

  /** A letter at the left edge for each row in view whose own lies beyond it.
   *  @param {CanvasRenderingContext2D} pen @param {Camera} camera @param {Palette} palette */
  drawPins(pen, camera, palette) {
    this.pinned.length = 0;
    const { plan } = this;
    if (plan.seatSide * camera.scale < PIN_FROM_PX) return;
    const left = camera.toChartX(0);
    const top = camera.toChartY(0);
    const bottom = camera.toChartY(camera.height);
    pen.font = `650 12px ${palette.family}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let r = 0; r < plan.rows.length; r += 1) {
      const { label } = plan.rows[r];
      if (!label || this.left[r] - plan.pitch > left || this.right[r] < left) continue;
      if (this.bottom[r] < top || this.top[r] > bottom) continue;
      const seat = this.leftmost(r, left);
      const y = camera.toScreenY(plan.ys[seat]);
      if (seat < 0 || y < 0 || y > camera.height) continue;
      this.drawPin(pen, palette, label, y);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {Palette} palette @param {string} label @param {number} y */
  drawPin(pen, palette, label, y) {
    const width = Math.max(PIN_PX, label.length * 8 + 8);
    pen.fillStyle = palette.floor;
    pen.globalAlpha = 0.9;
    pen.beginPath();
    pen.roundRect(2, y - PIN_PX / 2, width, PIN_PX, 6);
    pen.fill();
    pen.globalAlpha = 1;
    pen.fillStyle = palette.ink;
    pen.fillText(label, 2 + width / 2, y + 0.5);
    this.pinned.push(label);
  }

  /** The first seat of a row from an edge on; -1 for none. @param {number} r @param {number} edge */
  leftmost(r, edge) {
    const { xs, rows } = this.plan;
    let found = -1;
    for (let seat = rows[r].first; seat < rows[r].end; seat += 1) {
      if (xs[seat] >= edge && (found < 0 || xs[seat] < xs[found])) found = seat;
    }
    return found;
  }

  /** Each row as one stroke in the colour of its first seat.
   *  @param {CanvasRenderingContext2D} pen @param {Camera} camera @param {Palette} palette */
  drawBars(pen, camera, palette) {
    const { plan } = this;
    pen.globalAlpha = 0.35;
    pen.lineWidth = Math.max(1, plan.seatSide * camera.scale);
    for (const { first, end } of plan.rows) {
      pen.strokeStyle = palette.tints[plan.categories[plan.category[first]].tint];
      pen.beginPath();
      for (const seat of [first, first + ((end - first) >> 1), end - 1]) {
        pen.lineTo(camera.toScreenX(plan.xs[seat]), camera.toScreenY(plan.ys[seat]));
      }
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }
}
