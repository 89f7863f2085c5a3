// Where the shopper looks: the chart point in the middle of the view, and CSS pixels per chart
// unit. Moves glide unless motion is reduced. Knows nothing of seats.

import { reducedMotion } from "./dom.js";

const GLIDE_MS = 260;
// Pixels from seat to seat: the nearest look, and the nearest at which a whole hall is shown.
const PITCH_MAX_PX = 72;
const PITCH_FIT_PX = 44;

export class Camera {
  /**
   * @param {{left: number, top: number, right: number, bottom: number}} bounds
   * @param {number} pitch  Chart units from seat to seat.
   */
  constructor(bounds, pitch) {
    this.bounds = bounds;
    this.pitch = pitch;
    this.width = 1;
    this.height = 1;
    // Kept free of the hall when it is shown whole: controls lie there.
    this.inset = { top: 0, right: 0 };
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.fitScale = 1;
    this.gliding = false;
    this.movedAt = -Infinity;
    this.glideFrom = { x: 0, y: 0, scale: 1, at: 0 };
    this.glideTo = { x: 0, y: 0, scale: 1 };
  }

  /** @param {number} width @param {number} height */
  resize(width, height) {
    const fitted = Math.abs(this.scale - this.fitScale) < 1e-6;
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    const { left, top, right, bottom } = this.bounds;
    const roomX = Math.max(60, this.width - this.inset.right);
    const roomY = Math.max(60, this.height - this.inset.top);
    this.fitScale = Math.min(
      roomX / (right - left),
      roomY / (bottom - top),
      PITCH_FIT_PX / this.pitch,
    );
    if (fitted) this.jumpTo((left + right) / 2, (top + bottom) / 2, this.fitScale);
    else this.clamp();
  }

  toScreenX(/** @type {number} */ x) {
    return (x - this.x) * this.scale + this.width / 2;
  }

  toScreenY(/** @type {number} */ y) {
    return (y - this.y) * this.scale + this.height / 2;
  }

  toChartX(/** @type {number} */ px) {
    return (px - this.width / 2) / this.scale + this.x;
  }

  toChartY(/** @type {number} */ py) {
    return (py - this.height / 2) / this.scale + this.y;
  }

  /** @param {number} x @param {number} y @param {number} scale */
  jumpTo(x, y, scale) {
    this.gliding = false;
    this.x = x;
    this.y = y;
    this.scale = scale;
    this.clamp();
    this.movedAt = performance.now();
  }

  /** @param {number} x @param {number} y @param {number} scale */
  glide(x, y, scale) {
    if (reducedMotion.matches) {
      this.jumpTo(x, y, scale);
      return;
    }
    Object.assign(this.glideFrom, { x: this.x, y: this.y, scale: this.scale });
    this.glideFrom.at = performance.now();
    Object.assign(this.glideTo, { x, y, scale: this.bounded(scale) });
    this.gliding = true;
  }

  /** Advances a glide; called once per frame. @param {number} now */
  tick(now) {
    if (!this.gliding) return;
    const { glideFrom: from, glideTo: to } = this;
    const t = Math.min(1, Math.max(0, (now - from.at) / GLIDE_MS));
    const eased = 1 - (1 - t) ** 3;
    this.x = from.x + (to.x - from.x) * eased;
    this.y = from.y + (to.y - from.y) * eased;
    // Scales multiply: halfway between 1 and 4 is 2.
    this.scale = from.scale * (to.scale / from.scale) ** eased;
    this.gliding = t < 1;
    this.movedAt = now;
    this.clamp();
  }

  /** @param {number} dx @param {number} dy */
  panBy(dx, dy) {
    this.jumpTo(this.x - dx / this.scale, this.y - dy / this.scale, this.scale);
  }

  /** Zooms so that the chart point under (px, py) stays there. */
  zoomAt(/** @type {number} */ px, /** @type {number} */ py, /** @type {number} */ factor) {
    const x = this.toChartX(px);
    const y = this.toChartY(py);
    const scale = this.bounded(this.scale * factor);
    this.jumpTo(x - (px - this.width / 2) / scale, y - (py - this.height / 2) / scale, scale);
  }

  /** The zoom buttons: about the middle of the view. @param {number} factor */
  glideZoom(factor) {
    const base = this.gliding ? this.glideTo.scale : this.scale;
    this.glide(this.x, this.y, base * factor);
  }

  glideToFit() {
    const { left, top, right, bottom } = this.bounds;
    this.glide((left + right) / 2, (top + bottom) / 2, this.fitScale);
  }

  /** Moves only if the point is outside, closer than `margin` pixels to the edge, or under the lowest `covered`
   *  pixels, where a notice lies.
   *  @param {number} x @param {number} y @param {number} scaleMin @param {number} margin @param {number} covered */
  keepInView(x, y, scaleMin, margin, covered = 0) {
    const goal = this.gliding ? this.glideTo : this;
    const scale = Math.max(goal.scale, scaleMin);
    const px = (x - goal.x) * scale + this.width / 2;
    const py = (y - goal.y) * scale + this.height / 2;
    const inside =
      px > margin && px < this.width - margin && py > margin && py < this.height - covered - margin;
    if (!inside || scale !== goal.scale) this.glide(x, y + covered / 2 / scale, scale);
  }

  /** @param {number} scale */
  bounded(scale) {
    return Math.min(PITCH_MAX_PX / this.pitch, Math.max(this.fitScale * 0.8, scale));
  }

  /** The hall cannot be pushed out of sight; a hall smaller than the view stays centred. */
  clamp() {
    this.scale = this.bounded(this.scale);
    const { left, top, right, bottom } = this.bounds;
    const halfWidth = this.width / 2 / this.scale;
    const halfHeight = this.height / 2 / this.scale;
    this.x = within(this.x, left, right + this.inset.right / this.scale, halfWidth);
    this.y = within(this.y, top - this.inset.top / this.scale, bottom, halfHeight);
  }
}

/** @param {number} value @param {number} low @param {number} high @param {number} half */
function within(value, low, high, half) {
  const slack = half * 0.5;
  if (high - low <= half * 2) return (low + high) / 2;
  return Math.min(high - half + slack, Math.max(low + half - slack, value));
}
