// The server's time, as well as the page can know it. The shopper's own clock is never read: it
// may be wrong by minutes, and the hold ends when the server says so. Only elapsed time is
// measured here, by the monotonic clock.

// An exchange of messages places the server's clock within half its round trip; an older
// placement drifts (and the monotonic clock may stop while a laptop sleeps), so it loses its rank.
const TRUST_FOR_MS = 60_000;

class ServerClock {
  constructor() {
    this.offset = Number.NaN;
    this.spread = Infinity;
    this.learntAt = 0;
  }

  get known() {
    return !Number.isNaN(this.offset);
  }

  /** Server time in milliseconds since the epoch; `NaN` before the first answer. */
  now() {
    return performance.now() + this.offset;
  }

  /**
   * @param {string} serverTime @param {number} sentAt @param {number} receivedAt
   */
  learn(serverTime, sentAt, receivedAt) {
    const told = Date.parse(serverTime);
    if (Number.isNaN(told)) return;
    const spread = (receivedAt - sentAt) / 2;
    const stale = receivedAt - this.learntAt > TRUST_FOR_MS;
    if (!stale && spread > this.spread) return;
    this.offset = told - (sentAt + spread);
    this.spread = spread;
    this.learntAt = receivedAt;
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
