// A server of one event for tests of the page's state: seats and a floor, holds with fences, keys, bookings.
// Decides as the real one does, in memory and at once.

/** @typedef {import("../../web/js/state.d.ts").Command} Command */

const MINUTE_MS = 60_000;
const START = Date.parse("2030-01-01T12:00:00Z");
const at = (/** @type {number} */ ms) => new Date(START + ms).toISOString();

export const EVENT = /** @type {any} */ ({
  id: "evening",
  currency: "EUR",
  policy: { units_per_hold_max: 4, on_payment_failure: "keep" },
});
const FLOOR_CAPACITY = 5;
export const FREE_OF_CHARGE = /** @type {any} */ ({ provider: null, free_sales: true, demo_cards: [] });

export class Refusal extends Error {
  /** @param {number} status @param {string} code @param {object} [more] */
  constructor(status, code, more = {}) {
    super(code);
    this.problem = { status, code, ...more };
  }
}

export class FakeServer {
  /** @param {number} seats */
  constructor(seats) {
    this.now = 0;
    this.made = 0;
    /** Which hold or booking has a seat; "" is free. @type {Map<string, string>} */
    this.owner = new Map();
    for (let k = 1; k <= seats; k += 1) this.owner.set(`A-${k}`, "");
    /** @type {Map<string, any>} */ this.holds = new Map();
    /** @type {Map<string, any>} */ this.bookings = new Map();
    /** The answer that each key got. @type {Map<string, {route: string, answer: any}>} */ this.keys = new Map();
  }

  /**
   * Carries a command out: what it answers, or the problem of its refusal.
   * @param {Command} command @returns {{answer: any}|{problem: any}}
   */
  perform({ call }) {
    const known = call.key === undefined ? undefined : this.keys.get(call.key);
    if (known && known.route !== call.route) return { problem: { status: 422, code: "idempotency_key_reused" } };
    if (known) return { answer: { ...known.answer, server_time: at(this.now) } };
    try {
      const answer = structuredClone(this.answer(call));
      if (call.key !== undefined) this.keys.set(call.key, { route: call.route, answer });
      return { answer };
    } catch (error) {
      if (error instanceof Refusal) return { problem: error.problem };
      throw error;
    }
  }

  /** @param {any} call */
  answer({ route, id, body, fence }) {
    switch (route) {
      case "POST /v1/events/{event}/holds":
        return this.hold(body.units ?? this.best(body.best.quantity));
      case "GET /v1/holds":
        return [...this.holds.values()].filter((hold) => hold.mine).map((hold) => this.shown(hold));
      case "GET /v1/holds/{hold}":
        return this.shown(this.holdOf(id));
      case "PATCH /v1/holds/{hold}":
        return this.change(this.active(id, body.fence), body);
      case "DELETE /v1/holds/{hold}": {
        const hold = this.holdOf(id);
        return hold.state === "released" ? this.shown(hold) : this.end(this.live(id, fence), "released");
      }
      case "POST /v1/holds/{hold}/extend": {
        const hold = this.active(id);
        hold.expires = this.now + MINUTE_MS;
        return this.shown(hold);
      }
      case "POST /v1/holds/{hold}/confirm":
        return this.confirm(this.active(id, body.fence));
      default:
        throw new Error(`the server knows no ${route}`);
    }
  }

  /** Units that are free, as a request. @param {number} quantity */
  best(quantity) {
    const free = [...this.owner].filter(([, owner]) => owner === "").slice(0, quantity);
    if (free.length < quantity) throw new Refusal(409, "unit_unavailable", { conflicts: [] });
    return free.map(([seat]) => ({ seat }));
  }

  /** @param {any[]} units @param {boolean} [mine]  Of the shopper under test. */
  hold(units, mine = true) {
    this.refuseTaken(units);
    this.made += 1;
    const id = `hold-${this.made}`;
    const expires = this.now + MINUTE_MS;
    const hold = { id, mine, state: "active", fence: this.made, seats: new Set(), places: 0, expires, booking: null };
    this.holds.set(id, hold);
    this.add(hold, units);
    return { ...this.shown(hold), secret: `secret of ${id}` };
  }

  /** @param {any} hold @param {{add?: any[], drop?: any[]}} body */
  change(hold, { add = [], drop = [] }) {
    this.refuseTaken(add);
    for (const { seat, quantity } of drop) {
      if (quantity) hold.places = Math.max(0, hold.places - quantity);
      else if (hold.seats.delete(seat)) this.owner.set(seat, "");
    }
    this.add(hold, add);
    this.made += 1;
    hold.fence = this.made;
    return this.shown(hold);
  }

  /** Places of the floor that are neither held nor sold. */
  get room() {
    return [...this.holds.values()].reduce((room, { places }) => room - places, FLOOR_CAPACITY);
  }

  /** @param {any[]} units */
  refuseTaken(units) {
    const conflicts = units.flatMap(/** @returns {any[]} */ ({ seat, area, quantity }) => {
      if (area) return quantity > this.room ? [{ area, state: "full", free: this.room }] : [];
      return this.owner.get(seat) === "" ? [] : [{ seat, state: this.stateOf(this.owner.get(seat) ?? "") }];
    });
    if (conflicts.length > 0) throw new Refusal(409, "unit_unavailable", { conflicts });
  }

  /** @param {string} owner */
  stateOf(owner) {
    if (this.bookings.has(owner)) return "sold";
    return this.holds.get(owner)?.mine ? "yours" : "held";
  }

  /** @param {any} hold @param {any[]} units */
  add(hold, units) {
    for (const { seat, quantity } of units) {
      if (quantity) {
        hold.places += quantity;
        continue;
      }
      hold.seats.add(seat);
      this.owner.set(seat, hold.id);
    }
  }

  /** @param {any} hold */
  confirm(hold) {
    const id = `booking-${hold.id}`;
    this.bookings.set(id, { id, units: namesOf(this.shown(hold).units) });
    for (const seat of hold.seats) this.owner.set(seat, id);
    Object.assign(hold, { state: "consumed", booking: id });
    return { id, event: EVENT.id, state: "confirmed" };
  }

  /** @param {any} hold @param {string} state */
  end(hold, state) {
    for (const seat of hold.seats) this.owner.set(seat, "");
    Object.assign(hold, { state, places: 0 });
    return this.shown(hold);
  }

  /** @param {any} id */
  holdOf(id) {
    const hold = this.holds.get(id);
    if (!hold) throw new Refusal(404, "hold_not_found");
    return hold;
  }

  /** @param {any} id @param {number} [fence]  What the caller knows; none skips the check. */
  live(id, fence) {
    const hold = this.holdOf(id);
    if (hold.state === "active" && this.now >= hold.expires) this.end(hold, "expired");
    if (!["active", "pinned"].includes(hold.state)) throw new Refusal(409, `hold_${hold.state}`);
    if (fence !== undefined && hold.fence !== fence) throw new Refusal(409, "stale_fence");
    return hold;
  }

  /** As `live`, for what a payment under way forbids. @param {any} id @param {number} [fence] */
  active(id, fence) {
    const hold = this.live(id, fence);
    if (hold.state === "pinned") throw new Refusal(409, "payment_in_progress", { booking: hold.booking });
    return hold;
  }

  /** @param {any} hold @returns {any} */
  shown(hold) {
    if (hold.state === "active" && this.now >= hold.expires) this.end(hold, "expired");
    const { id, state, fence, booking } = hold;
    const places = Array.from({ length: hold.places }, () => ({ area: "floor" }));
    const units = [...[...hold.seats].map((seat) => ({ seat })), ...places].map((unit) => ({ ...unit, price: 100 }));
    const [server_time, expires_at] = [at(this.now), at(hold.expires)];
    return { id, state, fence, booking, units, event: EVENT.id, total: units.length * 100, server_time, expires_at };
  }
}

/** Seats by their ids, each place of the floor as "floor". @param {{seat?: string, area?: string}[]} units */
export const namesOf = (units) => units.map(({ seat, area }) => seat ?? area ?? "").sort();
