// Wheel, drag, pinch and tap on the canvas, told apart here and nowhere else. Moves the camera;
// what a tap means is the caller's.

const WHEEL_LINE_PX = 18;
const DRAG_FROM_PX = { mouse: 5, touch: 10 };

/**
 * @typedef {object} GestureTarget
 * @property {() => void} moved  The camera changed.
 * @property {(x: number, y: number, touch: boolean) => void} tapped
 * @property {(x: number, y: number) => void} hovered
 * @property {() => void} left
 */

export class Gestures {
  /**
   * @param {HTMLCanvasElement} canvas @param {import("./camera.js").Camera} camera
   * @param {GestureTarget} target
   */
  constructor(canvas, camera, target) {
    this.canvas = canvas;
    this.camera = camera;
    this.target = target;
    /** @type {Map<number, {x: number, y: number}>} */
    this.pointers = new Map();
    this.start = { x: 0, y: 0 };
    this.dragging = false;
    this.pinched = false;
    this.spread = 0;
    this.middle = { x: 0, y: 0 };
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => this.down(e));
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("pointerup", (e) => this.up(e, true));
    canvas.addEventListener("pointercancel", (e) => this.up(e, false));
    canvas.addEventListener("pointerleave", (e) => this.leave(e));
  }

  /** @param {MouseEvent} event */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** A finger leaves with every tap, and what the tap shows stays. @param {PointerEvent} event */
  leave(event) {
    if (event.pointerType === "mouse") this.target.left();
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    const { x, y } = this.place(event);
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? WHEEL_LINE_PX : 1;
    const delta = Math.max(-160, Math.min(160, event.deltaY * lines));
    // A trackpad's pinch arrives as a wheel with ctrl and small deltas.
    const speed = event.ctrlKey ? 0.011 : 0.0019;
    this.camera.zoomAt(x, y, Math.exp(-delta * speed));
    this.target.moved();
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const place = this.place(event);
    this.pointers.set(event.pointerId, { ...place });
    if (this.pointers.size === 1) {
      this.start = place;
      this.dragging = false;
      this.pinched = false;
    } else {
      this.pinched = true;
      this.measurePinch();
    }
  }

  /** @param {PointerEvent} event */
  move(event) {
    const held = this.pointers.get(event.pointerId);
    const { x, y } = this.place(event);
    if (!held) {
      if (event.pointerType === "mouse") this.target.hovered(x, y);
      return;
    }
    const dx = x - held.x;
    const dy = y - held.y;
    held.x = x;
    held.y = y;
    if (this.pointers.size === 2) this.pinch();
    else if (this.pointers.size === 1) this.drag(event, dx, dy);
  }

  /** @param {PointerEvent} event @param {number} dx @param {number} dy */
  drag(event, dx, dy) {
    const threshold = event.pointerType === "mouse" ? DRAG_FROM_PX.mouse : DRAG_FROM_PX.touch;
    const { x, y } = this.place(event);
    if (!this.dragging && !this.pinched) {
      if (Math.hypot(x - this.start.x, y - this.start.y) < threshold) return;
      this.dragging = true;
      this.canvas.classList.add("dragging");
      this.target.left();
    }
    this.camera.panBy(dx, dy);
    this.target.moved();
  }

  /** Two fingers: what was under them stays under them. */
  pinch() {
    const before = this.spread;
    const { x, y } = this.middle;
    this.measurePinch();
    this.camera.panBy(this.middle.x - x, this.middle.y - y);
    if (before > 0) this.camera.zoomAt(this.middle.x, this.middle.y, this.spread / before);
    this.target.moved();
  }

  measurePinch() {
    const [a, b] = this.pointers.values();
    this.spread = Math.hypot(a.x - b.x, a.y - b.y);
    this.middle.x = (a.x + b.x) / 2;
    this.middle.y = (a.y + b.y) / 2;
  }

  /** @param {PointerEvent} event @param {boolean} released */
  up(event, released) {
    if (!this.pointers.delete(event.pointerId)) return;
    if (this.pointers.size > 0) return;
    this.canvas.classList.remove("dragging");
    const tap = released && !this.dragging && !this.pinched;
    this.dragging = false;
    if (tap) this.target.tapped(this.start.x, this.start.y, event.pointerType === "touch");
  }
}
