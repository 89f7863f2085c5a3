// The state of every unit of one event as far as the page knows it: a snapshot, the frames of the
// feed after it, and the answers to our own commands. Decides nothing.

/** @typedef {import("./wire.js").SeatsSnapshot} SeatsSnapshot */
/** @typedef {import("./wire.js").FeedFrame} FeedFrame */
/** @typedef {import("./wire.js").UnitState} UnitState */
/** @typedef {import("./plan.js").Plan} Plan */

export const FREE = 0;
export const HELD = 1;
export const SOLD = 2;
export const BLOCKED = 3;

/** @type {Record<UnitState, number>} */
const CODE = { free: FREE, held: HELD, sold: SOLD, blocked: BLOCKED };
/** @type {UnitState[]} */
export const STATE_NAMES = ["free", "held", "sold", "blocked"];

// Beyond this many changed seats the map is better drawn anew than redrawn seat by seat.
const REDRAWN_MAX = 600;

export class Inventory extends EventTarget {
  /** @param {Plan} plan */
  constructor(plan) {
    super();
    this.plan = plan;
    this.seq = -1;
    /** Tells the commit `seq` from one that had its number before a backup was restored. */ this.digest = "";
    this.state = new Uint8Array(plan.size);
    // An answer to our own command may overtake the feed. Per seat, frames up to the answer's
    // seq are old and would make the seat flicker back.
    this.answeredSeq = new Float64Array(plan.size).fill(-1);
    this.next = new Uint8Array(plan.size);
    /** Seats of each category in each state: `seatsIn[state][category]`. */
    this.seatsIn = STATE_NAMES.map(() => new Int32Array(plan.categories.length));
    for (let i = 0; i < plan.size; i += 1) this.seatsIn[FREE][plan.category[i]] += 1;
    /** @type {Map<string, {free: number, held: number, sold: number, blocked: number}>} */
    this.areas = new Map();
    for (const area of plan.areas) {
      this.areas.set(area.id, { free: area.capacity, held: 0, sold: 0, blocked: 0 });
    }
    /** Called per seat; a plain function because a bot rush must not build event objects. */
    this.onSeat = (/** @type {number} */ _seat, /** @type {number} */ _before) => {};
    this.onMany = () => {};
  }

  /** What the server answered to our commands counts no more: a copy of its ledger may lack it. */
  forgetAnswers() {
    this.answeredSeq.fill(-1);
  }

  /** @param {SeatsSnapshot} snapshot */
  applySnapshot(snapshot) {
    // Numbers go back if a copy of the ledger was put back.
    if (snapshot.seq < this.seq) this.forgetAnswers();
    this.next.fill(FREE);
    this.note(snapshot.held, HELD);
    this.note(snapshot.sold, SOLD);
    this.note(snapshot.blocked, BLOCKED);
    let changed = 0;
    for (let i = 0; i < this.plan.size; i += 1) {
      if (this.answeredSeq[i] > snapshot.seq) this.next[i] = this.state[i];
      if (this.next[i] !== this.state[i]) changed += 1;
    }
    const redraw = changed <= REDRAWN_MAX;
    for (let i = 0; i < this.plan.size; i += 1) {
      if (this.next[i] !== this.state[i]) this.setSeat(i, this.next[i], redraw);
    }
    for (const area of snapshot.areas) this.setArea(area.area, area);
    this.seq = snapshot.seq;
    this.digest = snapshot.digest;
    if (!redraw) this.onMany();
    this.changed();
  }

  /** @param {string[]} ids @param {number} code */
  note(ids, code) {
    for (const id of ids) {
      const seat = this.plan.indexOf.get(id);
      if (seat !== undefined) this.next[seat] = code;
    }
  }

  /** The caller has checked that no commit is missing before it. @param {FeedFrame} frame */
  applyFrame(frame) {
    const runs = [];
    let size = 0;
    for (const change of frame.changes) {
      if (change.area) this.setArea(change.area, change);
      for (const run of change.seats ?? []) {
        const [first, last] = (Array.isArray(run) ? run : [run, run]).map((id) => this.plan.indexOf.get(id));
        if (first === undefined || last === undefined || !change.state) continue;
        runs.push({ first, last, code: CODE[change.state] });
        size += last - first + 1;
      }
    }
    const redraw = size <= REDRAWN_MAX;
    for (const { first, last, code } of runs) {
      for (let seat = first; seat <= last; seat += 1) {
        if (this.answeredSeq[seat] < frame.seq) this.setSeat(seat, code, redraw);
      }
    }
    this.seq = frame.seq;
    this.digest = frame.digest;
    if (!redraw) this.onMany();
    this.changed();
  }

  /**
   * What the server answered to a command of ours. `seq` is the commit it speaks of; a ledger
   * that numbers later sends none, and then the feed has the last word.
   * @param {Iterable<string>} ids @param {UnitState} state @param {number|undefined} seq
   */
  applyAnswer(ids, state, seq) {
    for (const id of ids) {
      const seat = this.plan.indexOf.get(id);
      if (seat === undefined) continue;
      if (seq !== undefined && seq < this.seq) continue;
      if (seq !== undefined) this.answeredSeq[seat] = seq;
      this.setSeat(seat, CODE[state], true);
    }
    this.changed();
  }

  /** @param {number} seat @param {number} code @param {boolean} redraw */
  setSeat(seat, code, redraw) {
    const before = this.state[seat];
    if (before === code) return;
    this.state[seat] = code;
    const category = this.plan.category[seat];
    this.seatsIn[before][category] -= 1;
    this.seatsIn[code][category] += 1;
    if (redraw) this.onSeat(seat, before);
  }

  /** @param {string} id @param {import("./wire.js").AreaCounts} counts */
  setArea(id, counts) {
    const { free = 0, held = 0, sold = 0, blocked = 0 } = counts;
    this.areas.set(id, { free, held, sold, blocked });
  }

  /** How many units of a category are in each state, area places included. @param {number} category */
  countsOf(category) {
    const counts = { free: 0, held: 0, sold: 0, blocked: 0 };
    STATE_NAMES.forEach((name, state) => (counts[name] += this.seatsIn[state][category]));
    for (const { id, category: own } of this.plan.areas) {
      if (own === category) addTo(counts, this.areas.get(id));
    }
    return counts;
  }

  /** The same of the whole event. */
  counts() {
    const counts = { free: 0, held: 0, sold: 0, blocked: 0 };
    this.plan.categories.forEach((_, c) => addTo(counts, this.countsOf(c)));
    return counts;
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** @typedef {{free: number, held: number, sold: number, blocked: number}} Counts */

/** @param {Counts} counts @param {Counts|undefined} more */
function addTo(counts, more) {
  for (const name of STATE_NAMES) counts[name] += more?.[name] ?? 0;
}
