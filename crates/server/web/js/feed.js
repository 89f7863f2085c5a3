// Keeps an inventory true: one snapshot, then the frames of the event's feed. Commits are numbered
// without a gap, so a missing frame is noticed and a new snapshot is read. If the stream is lost the
// page says so, asks for snapshots meanwhile, and goes back to the stream by itself.

import { asAnyone } from "./api.js";

/** @typedef {"connecting"|"live"|"polling"|"lost"} ConnectionState */

const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const POLL_MS = 4000;
// Where a cache carries the crowd, it answers each second anew.
const FRAMES_MS = 900;
const QUIET_CHECK_MS = 30_000;
const HIDDEN_CLOSE_MS = 60_000;
// A change of the event reaches all pages that poll within a second, and no cache carries its answer.
const REREAD_SPREAD_MS = 3000;
// A reset may reach every page of an event at the same moment.
const RESET_SPREAD_MS = 1000;

export class Feed extends EventTarget {
  /** @param {string} event @param {import("./inventory.js").Inventory} inventory */
  constructor(event, inventory) {
    super();
    this.event = event;
    this.inventory = inventory;
    /** @type {ConnectionState} */
    this.state = "connecting";
    /** @type {EventSource|null} */
    this.source = null;
    this.failures = 0;
    this.closed = false;
    /** Whether the page was hidden for so long that it gave its connection back. */ this.parked = false;
    this.syncing = false;
    this.heardAt = performance.now();
    this.snapshotAt = -Infinity;
    /** @type {ReturnType<typeof setTimeout>|undefined} */ this.retryTimer = undefined;
    /** @type {ReturnType<typeof setTimeout>|undefined} */ this.hiddenTimer = undefined;
    /** Whether this server's pages poll in place of opening streams. */
    this.polls = document.documentElement.dataset.feed === "poll";
    /** The number of the event's terms. @type {number|undefined} */ this.terms = undefined;
    this.rereading = false;
    /** @type {ReturnType<typeof setTimeout>|undefined} */ this.framesTimer = undefined;
    this.pollTimer = setInterval(() => this.poll(), POLL_MS);
    this.onVisibility = () => this.visibilityChanged();
    this.onOnline = () => this.resync();
    this.onOffline = () => this.lost(null);
    /** Of the snapshot that was applied last. */ this.version = { etag: "" };
    document.addEventListener("visibilitychange", this.onVisibility);
    addEventListener("online", this.onOnline);
    addEventListener("offline", this.onOffline);
  }

  close() {
    this.closed = true;
    this.shut();
    clearInterval(this.pollTimer);
    clearTimeout(this.hiddenTimer);
    document.removeEventListener("visibilitychange", this.onVisibility);
    removeEventListener("online", this.onOnline);
    removeEventListener("offline", this.onOffline);
  }

  /** Snapshot first, then the stream from its seq on. Safe to call at any time. */
  async resync() {
    if (this.closed || this.parked || this.syncing) return;
    this.syncing = true;
    this.shut();
    try {
      const snapshot = await this.snapshot();
      if (this.closed || this.parked) return;
      if (snapshot) this.apply(snapshot);
      this.heardAt = performance.now();
      this.snapshotAt = this.heardAt;
      this.open();
    } catch (error) {
      this.lost(error);
    } finally {
      this.syncing = false;
    }
  }

  /** The seats as they are; `null` if they are as the snapshot said that was applied last. */
  async snapshot() {
    const version = { ...this.version };
    /** @type {import("./wire.js").SeatsSnapshot|null} */
    const seats = await asAnyone({ route: "GET /v1/events/{event}/seats", id: this.event, version });
    return seats && { seats, version };
  }

  /** @param {NonNullable<Awaited<ReturnType<Feed["snapshot"]>>>} snapshot */
  apply({ seats, version }) {
    this.inventory.applySnapshot(seats);
    this.version = version;
  }

  /** The server does not have our commit: it may be a copy that ends where we began, and lacks what it answered us. */
  forget() {
    this.version = { etag: "" };
    this.inventory.forgetAnswers();
  }

  open() {
    if (this.polls) {
      this.become("live");
      this.nextFrames();
      return;
    }
    const { seq, digest } = this.inventory;
    const path = `/v1/events/${encodeURIComponent(this.event)}/feed?after=${seq}`;
    // A server of an earlier version tells no digest, and takes none.
    const source = new EventSource(digest ? `${path}&digest=${digest}` : path);
    this.source = source;
    source.onopen = () => {
      this.failures = 0;
      this.heardAt = performance.now();
      this.become("live");
    };
    source.onmessage = (message) => this.frame(JSON.parse(message.data));
    source.addEventListener("reset", () => {
      this.shut();
      this.forget();
      this.retryTimer = setTimeout(() => this.resync(), Math.random() * RESET_SPREAD_MS);
    });
    source.addEventListener("event", (message) => {
      this.dispatchEvent(new CustomEvent("event", { detail: JSON.parse(message.data) }));
    });
    source.onerror = () => {
      if (this.source !== source) return;
      // While CONNECTING the browser tries again itself and sends Last-Event-ID; CLOSED is ours.
      if (source.readyState === EventSource.CLOSED) this.lost(null);
      else this.away();
    };
  }

  /** Not all pages in the same instant. */
  nextFrames() {
    clearTimeout(this.framesTimer);
    this.framesTimer = setTimeout(() => this.readFrames(), FRAMES_MS * (0.8 + Math.random() * 0.3));
  }

  async readFrames() {
    const { seq, digest } = this.inventory;
    try {
      const known = { after: String(seq), digest };
      const frame = await asAnyone({ route: "GET /v1/events/{event}/frames", id: this.event, ...known });
      if (this.closed || this.syncing || this.framesTimer === undefined) return;
      this.failures = 0;
      if (frame.reset) {
        this.forget();
        this.resync();
        return;
      }
      this.frame(frame);
      this.nextFrames();
      if (this.terms !== frame.terms && !this.rereading) this.rereadEvent(frame.terms);
    } catch (error) {
      this.lost(error);
    }
  }

  /** A stream carries the event when it changes; here it is read, once at a time. @param {number|undefined} terms */
  rereadEvent(terms) {
    this.rereading = true;
    setTimeout(async () => {
      try {
        const detail = await asAnyone({ route: "GET /v1/events/{event}", id: this.event });
        if (this.closed) return;
        this.terms = terms;
        this.dispatchEvent(new CustomEvent("event", { detail }));
      } catch {
        // The seats go on, and the next frame asks again.
      } finally {
        this.rereading = false;
      }
    }, Math.random() * REREAD_SPREAD_MS);
  }

  /** @param {import("./wire.js").FeedFrame} frame */
  frame(frame) {
    this.heardAt = performance.now();
    if (frame.seq <= this.inventory.seq) return;
    if (frame.from > this.inventory.seq + 1) {
      this.resync();
      return;
    }
    // Drawn with the next animation frame, all of it at once.
    this.inventory.applyFrame(frame);
  }

  /** @param {unknown} error */
  lost(error) {
    if (this.closed || this.parked) return;
    this.shut();
    this.away();
    const asked = /** @type {any} */ (error)?.retryAfterMs ?? 0;
    const wait = Math.max(asked, RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)]);
    this.failures += 1;
    // Spread out, or every page of a rush comes back in the same instant.
    this.retryTimer = setTimeout(() => this.resync(), wait * (0.75 + Math.random() * 0.5));
  }

  /** Without the stream; snapshots may still come through, if there is a network at all. */
  away() {
    const served = navigator.onLine && performance.now() - this.snapshotAt < POLL_MS * 1.5;
    this.become(served ? "polling" : "lost");
  }

  shut() {
    clearTimeout(this.retryTimer);
    clearTimeout(this.framesTimer);
    this.framesTimer = undefined;
    if (this.source) this.source.onerror = null;
    this.source?.close();
    this.source = null;
  }

  /** Snapshots while the stream is away; and a rare check that a quiet stream is not a dead one. */
  async poll() {
    if (this.closed || this.syncing || document.hidden || this.inventory.seq < 0) return;
    const quiet = performance.now() - this.heardAt > QUIET_CHECK_MS;
    if (this.state === "live" && !quiet) return;
    const seqBefore = this.inventory.seq;
    try {
      const snapshot = await this.snapshot();
      if (this.closed || this.syncing) return;
      this.heardAt = performance.now();
      this.snapshotAt = this.heardAt;
      if (this.state === "lost") this.become("polling");
      if (!snapshot) return;
      const { seq, digest } = snapshot.seats;
      // A server of an earlier version tells no digest.
      const isKnown = seq === this.inventory.seq && (!digest || digest === this.inventory.digest);
      // As frames said before: the next one needs only be told that nothing has changed since.
      if (isKnown) this.version = snapshot.version;
      if (isKnown || seq < this.inventory.seq) return;
      const deaf = this.state === "live" && this.inventory.seq === seqBefore;
      this.apply(snapshot);
      // Frames that should have come did not: the connection is dead without knowing it.
      if (deaf) this.resync();
    } catch {
      if (this.state === "live") this.lost(null);
      else this.away();
    }
  }

  /** A page that is hidden gives its connection back (browsers allow few per host). */
  visibilityChanged() {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) {
      this.hiddenTimer = setTimeout(() => {
        this.parked = true;
        this.shut();
        this.become("connecting");
      }, HIDDEN_CLOSE_MS);
      return;
    }
    this.parked = false;
    if (!this.source && this.framesTimer === undefined) this.resync();
  }

  /** @param {ConnectionState} state */
  become(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}
