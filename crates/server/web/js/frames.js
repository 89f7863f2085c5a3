// Remembers how long recent frames took, for the browser test and for the curious.

const KEPT = 240;

export class FrameTimes {
  constructor() {
    this.work = new Float32Array(KEPT);
    this.interval = new Float32Array(KEPT);
    this.recorded = 0;
    this.intervals = 0;
    this.lastAt = 0;
  }

  /** @param {number} startedAt @param {number} endedAt */
  record(startedAt, endedAt) {
    this.work[this.recorded % KEPT] = endedAt - startedAt;
    this.recorded += 1;
    if (this.lastAt > 0) {
      this.interval[this.intervals % KEPT] = startedAt - this.lastAt;
      this.intervals += 1;
    }
    this.lastAt = startedAt;
  }

  /** The map rests: the gap to the next frame says nothing about smoothness. */
  pause() {
    this.lastAt = 0;
  }

  reset() {
    this.recorded = 0;
    this.intervals = 0;
    this.lastAt = 0;
  }

  report() {
    return {
      frames: this.recorded,
      work_ms: summary(this.work, Math.min(this.recorded, KEPT)),
      interval_ms: summary(this.interval, Math.min(this.intervals, KEPT)),
    };
  }
}

/** @param {Float32Array} values @param {number} count */
function summary(values, count) {
  const sorted = values.slice(0, count).sort();
  const at = (/** @type {number} */ share) =>
    count === 0
      ? 0
      : Math.round(sorted[Math.min(count - 1, Math.floor(count * share))] * 100) / 100;
  return {
    p50: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
    max: at(1),
    recent: [...values.slice(0, count)],
  };
}
