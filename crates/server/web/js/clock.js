// The server's time, as well as the page can know it. The shopper's own clock is never read: it
// may be wrong by minutes, and the hold ends when the server says so. Only elapsed time is
// measured here, by the monotonic clock.

// An exchange of messages places the server's clock within half its round trip. A newer one wins
// unless it is less exact and agrees with what is known; after this long it always wins, because clocks drift.
const TRUST_FOR_MS = 60_000;

class ServerClock {
  constructor() {
    this.offset = Number.NaN;
    this.spread = Infinity;
    this.learntAt = 0;
    this.askedAt = -Infinity;
  }

  get known() {
    return !Number.isNaN(this.offset);
  }

  /** Server time in milliseconds since the epoch; `NaN` before the first answer. */
  now() {
    return performance.now() + this.offset;
  }

  /**
   * Takes the time that an answer was written at. The caller knows that it was written for this
   * request: an answer out of a cache says when it was stored.
   * @param {string} serverTime @param {number} sentAt @param {number} receivedAt
   */
  learn(serverTime, sentAt, receivedAt) {
    const told = Date.parse(serverTime);
    // What was asked earlier and answered late is older than what is known.
    if (Number.isNaN(told) || sentAt < this.askedAt) return;
    const spread = (receivedAt - sentAt) / 2;
    const offset = told - (sentAt + spread);
    const stale = receivedAt - this.learntAt > TRUST_FOR_MS;
    // Both cannot be: the machine slept, and elapsed time was not counted.
    const excludes = Math.abs(offset - this.offset) > spread + this.spread;
    if (!stale && !excludes && spread > this.spread) return;
    this.offset = offset;
    this.spread = spread;
    this.learntAt = receivedAt;
    this.askedAt = sentAt;
  }

  /** Forgets the rank of the present placement, so that the next answer replaces it. */
  distrust() {
    this.spread = Infinity;
  }

  /** Milliseconds until a time of the server, never negative. @param {string} time */
  until(time) {
    return Math.max(0, Date.parse(time) - this.now());
  }
}

export const clock = new ServerClock();
