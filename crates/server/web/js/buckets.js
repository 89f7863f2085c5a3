// Finds the seats of a rectangle, or the seat at a point, without looking at the whole hall: the
// seats are sorted once into square buckets.

export class SeatBuckets {
  /** @param {Float32Array} xs @param {Float32Array} ys @param {number} side */
  constructor(xs, ys, side) {
    this.xs = xs;
    this.ys = ys;
    this.side = side;
    /** @type {number} */
    this.left = xs.length ? xs.reduce((a, b) => Math.min(a, b), Infinity) : 0;
    /** @type {number} */
    this.top = ys.length ? ys.reduce((a, b) => Math.min(a, b), Infinity) : 0;
    /** @type {number} */
    this.columns = 1 + this.cell(xs.reduce((a, b) => Math.max(a, b), this.left) - this.left);
    this.lines = 1 + this.cell(ys.reduce((a, b) => Math.max(a, b), this.top) - this.top);
    // Counting sort: `order[start[b]..start[b + 1]]` are the seats of bucket b.
    this.start = new Uint32Array(this.columns * this.lines + 1);
    for (let i = 0; i < xs.length; i += 1) this.start[this.bucketOf(i) + 1] += 1;
    for (let b = 1; b < this.start.length; b += 1) this.start[b] += this.start[b - 1];
    this.order = new Uint32Array(xs.length);
    const next = this.start.slice();
    for (let i = 0; i < xs.length; i += 1) {
      const b = this.bucketOf(i);
      this.order[next[b]] = i;
      next[b] += 1;
    }
  }

  /** @param {number} distance @returns {number} */
  cell(distance) {
    return Math.floor(distance / this.side);
  }

  /** @param {number} seat @returns {number} */
  bucketOf(seat) {
    return (
      this.cell(this.ys[seat] - this.top) * this.columns + this.cell(this.xs[seat] - this.left)
    );
  }

  /**
   * Writes the seats whose centre lies in the rectangle into `into` and answers how many.
   * `into` must have room for every seat; it is the caller's, so that nothing is allocated here.
   * @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1
   * @param {Uint32Array} into
   */
  collect(x0, y0, x1, y1, into) {
    const c0 = Math.max(0, this.cell(x0 - this.left));
    const c1 = Math.min(this.columns - 1, this.cell(x1 - this.left));
    const l0 = Math.max(0, this.cell(y0 - this.top));
    const l1 = Math.min(this.lines - 1, this.cell(y1 - this.top));
    let found = 0;
    for (let line = l0; line <= l1; line += 1) {
      for (let column = c0; column <= c1; column += 1) {
        const b = line * this.columns + column;
        for (let k = this.start[b]; k < this.start[b + 1]; k += 1) {
          const i = this.order[k];
          const x = this.xs[i];
          const y = this.ys[i];
          if (x < x0 || x > x1 || y < y0 || y > y1) continue;
          into[found] = i;
          found += 1;
        }
      }
    }
    return found;
  }

  /** The seat closest to a point within `reach`, or -1. */
  nearest(/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ reach) {
    let best = -1;
    let bestSquare = reach * reach;
    const c0 = Math.max(0, this.cell(x - reach - this.left));
    const c1 = Math.min(this.columns - 1, this.cell(x + reach - this.left));
    const l0 = Math.max(0, this.cell(y - reach - this.top));
    const l1 = Math.min(this.lines - 1, this.cell(y + reach - this.top));
    for (let line = l0; line <= l1; line += 1) {
      for (let column = c0; column <= c1; column += 1) {
        const b = line * this.columns + column;
        for (let k = this.start[b]; k < this.start[b + 1]; k += 1) {
          const i = this.order[k];
          const square = (this.xs[i] - x) ** 2 + (this.ys[i] - y) ** 2;
          if (square < bestSquare) [best, bestSquare] = [i, square];
        }
      }
    }
    return best;
  }
}
