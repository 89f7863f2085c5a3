// Turns what the shopper wants into what is held, one command at a time, and takes the server's
// word for every outcome. Does not know why something is wanted; that is holding.js.

import { Refused, Unreachable, asShopper, listAll, newKey, paths } from "./api.js";
import { Abandoned, Lane, asksToWait, insist } from "./attempts.js";
import { Basket, difference } from "./basket.js";
import { forgetHold, storeBookingSecret, storeHold, storedHold } from "./holdstore.js";

/** @typedef {import("./wire.js").Hold} Hold */
/** @typedef {import("./wire.js").UnitRequest} UnitRequest */
/** @typedef {{problem: import("./wire.js").Problem, asked: UnitRequest[], again: Basket|null}} Refusal
 *  `asked` are the units of the refused command, `again` what to want on "try again". */
/** @typedef {{state: string, units: UnitRequest[]}} Ended */

// More rounds than that means the answers and our arithmetic disagree: take the server's word.
const ROUNDS_MAX = 8;
const OVER = ["hold_expired", "hold_released", "hold_revoked", "hold_not_found", "hold_consumed"];

export const isLive = (/** @type {Hold} */ hold) =>
  (hold.state === "active" || hold.state === "pinned") &&
  Date.parse(hold.server_time) < Date.parse(hold.expires_at);

export class HoldWorker extends EventTarget {
  /** @param {import("./wire.js").SaleEvent} event @param {import("./inventory.js").Inventory} inventory */
  constructor(event, inventory) {
    super();
    this.event = event;
    this.inventory = inventory;
    /** @type {Hold|null} */ this.hold = null;
    this.wanted = new Basket();
    /** @type {Refusal|null} */ this.refusal = null;
    /** @type {Ended|null} */ this.ended = null;
    /** @type {"idle"|"unsent"|"waiting"} */ this.trouble = "idle";
    this.waitUntil = 0;
    this.lane = new Lane();
    this.closed = false;
    /** @type {import("./attempts.js").AttemptWatch} */
    this.watch = {
      abandoned: () => this.closed,
      reached: () => this.inTrouble("idle"),
      unreachable: () => this.inTrouble("unsent"),
      waiting: (ms) => {
        this.waitUntil = performance.now() + ms;
        this.inTrouble("waiting");
      },
    };
  }

  get held() {
    return Basket.of(this.hold);
  }

  get settled() {
    return !this.lane.busy;
  }

  /** Until what is held is what is wanted. */
  async reconcile() {
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const { add, drop } = difference(this.held, this.wanted);
      if (add.length === 0 && drop.length === 0) return;
      const goal = this.wanted.copy();
      try {
        await this.step(add, drop);
      } catch (error) {
        // A change has no key: whether it happened is read from the hold itself.
        if (error instanceof Unreachable) await this.reread();
        else if (this.isOutdated(error, goal)) continue;
        else await this.settleRefusal(error, add, this.wanted);
      }
    }
    this.wanted = this.held;
    this.changed();
  }

  /** @param {UnitRequest[]} add @param {UnitRequest[]} drop */
  async step(add, drop) {
    const { hold } = this;
    if (!hold) {
      const path = paths.newHold(this.event.id);
      this.accept(await this.send("POST", path, { units: add }, newKey()));
    } else if (this.wanted.size === 0) {
      await this.giveBack(hold);
      // What was chosen while it was given back is still wanted.
      this.letGo();
    } else {
      const body = { ...(add.length ? { add } : {}), ...(drop.length ? { drop } : {}) };
      const options = { body, secret: hold.secret };
      const change = () => asShopper("PATCH", paths.hold(hold.id), options);
      this.accept(await insist(change, this.watch, "unsafe-to-repeat"));
    }
  }

  /** @param {Hold} hold */
  async giveBack(hold) {
    const options = { secret: hold.secret };
    const path = paths.hold(hold.id);
    const answer = await insist(() => asShopper("DELETE", path, options), this.watch);
    this.inventory.applyAnswer(Basket.of(hold).seats, "free", answer?.seq);
  }

  /**
   * A command that may be repeated.
   * @param {string} method @param {string} path @param {unknown} body @param {string} [key]
   */
  send(method, path, body, key) {
    const secret =
      this.hold && path.startsWith(paths.hold(this.hold.id)) ? this.hold.secret : undefined;
    return insist(() => asShopper(method, path, { body, key, secret }), this.watch);
  }

  /** @param {string} id @param {string} [secret] @returns {Promise<Hold|null>} */
  async fetchHold(id, secret) {
    try {
      return await insist(() => asShopper("GET", paths.hold(id), { secret }), this.watch);
    } catch (error) {
      if (error instanceof Refused && error.problem.status === 404) return null;
      throw error;
    }
  }

  /** @returns {Promise<Hold|undefined>} */
  async listedHold() {
    /** @type {Hold[]} */
    const holds = await insist(() => listAll(asShopper, paths.holds, "holds"), this.watch);
    const current = this.hold?.id;
    return holds
      .filter((hold) => hold.event === this.event.id && hold.id !== current && isLive(hold))
      .sort((a, b) => Date.parse(b.expires_at) - Date.parse(a.expires_at))[0];
  }

  async reread() {
    const { hold } = this;
    if (!hold) return;
    const now = await this.fetchHold(hold.id, hold.secret);
    if (now && isLive(now)) this.accept(now);
    else this.end(now ?? { ...hold, state: "released" });
  }

  /** As `reread`, and what another tab did to the hold is taken over instead of undone. */
  async catchUp() {
    const before = this.held;
    await this.reread();
    if (!this.hold) return;
    const own = difference(before, this.wanted);
    this.setWanted(this.held.drop(own.drop).add(own.add));
  }

  /** The refused goal is no longer what is wanted: ask for that instead. */
  isOutdated(/** @type {unknown} */ error, /** @type {Basket} */ goal) {
    if (!(error instanceof Refused) || asksToWait(error) || goal.equals(this.wanted)) return false;
    return !OVER.includes(error.code) && error.code !== "unit_unavailable";
  }

  /** @param {Basket} basket */
  setWanted(basket) {
    this.wanted = basket;
    this.changed();
  }

  /** Another hold takes the place of the present one, which lives on until it is given back. */
  switchTo(/** @type {Hold} */ hold) {
    this.hold = null;
    this.accept(hold);
  }

  /** @param {Hold} hold */
  accept(hold) {
    const before = this.held;
    const secret = hold.secret ?? (this.hold?.id === hold.id ? this.hold.secret : undefined);
    this.hold = { ...hold, secret };
    const after = this.held;
    const lost = [...before.seats].filter((seat) => !after.seats.has(seat));
    this.inventory.applyAnswer(after.seats, "held", hold.seq);
    this.inventory.applyAnswer(lost, "free", hold.seq);
    const stored = storedHold(this.event.id);
    storeHold(this.event.id, { ...(stored?.id === hold.id && stored), id: hold.id, secret });
    this.ended = null;
    this.changed();
  }

  /** The hold is over by the server's word. @param {Hold} hold @param {string} ending */
  end(hold, ending = hold.state) {
    const wanted = this.wanted.size > 0 ? this.wanted : Basket.of(hold);
    const units = wanted.requests();
    const { secret } = this.hold ?? {};
    this.clear();
    if (hold.state === "consumed" && hold.booking) {
      storeBookingSecret(hold.booking, secret);
      this.dispatchEvent(new CustomEvent("booked", { detail: hold.booking }));
    } else {
      const state = isLive(hold) || hold.state === "active" ? "expired" : ending;
      this.ended = { state, units };
      this.changed();
    }
  }

  clear() {
    this.wanted = new Basket();
    this.letGo();
  }

  letGo() {
    this.hold = null;
    forgetHold(this.event.id);
    this.changed();
  }

  /**
   * Takes a refusal for what it is; anything else is thrown on.
   * @param {unknown} error @param {UnitRequest[]} asked @param {Basket|null} goal
   * @returns {Promise<null>}
   */
  async settleRefusal(error, asked, goal) {
    if (!(error instanceof Refused)) throw error;
    const { problem, code } = error;
    if (OVER.includes(code)) {
      await this.reread();
    } else if (code === "stale_fence") {
      await this.catchUp();
      if (this.hold) this.refuse(problem, asked, null);
    } else if (code === "unit_unavailable") {
      await this.lose(problem, asked);
    } else {
      const again = goal && asksToWait(error) ? goal.copy() : null;
      this.wanted = this.held;
      this.refuse(problem, asked, again);
    }
    return null;
  }

  /** @param {import("./wire.js").Problem} problem @param {UnitRequest[]} asked */
  async lose(problem, asked) {
    const conflicts = problem.conflicts ?? [];
    const others = conflicts.filter((conflict) => conflict.state !== "yours");
    if (others.length < conflicts.length && (await this.adopt())) return;
    const held = this.held;
    for (const conflict of conflicts) {
      if (conflict.seat && held.seats.has(conflict.seat)) continue;
      if (conflict.area) this.wanted.setQuantity(conflict.area, held.quantity(conflict.area));
      if (!conflict.seat) continue;
      this.wanted.seats.delete(conflict.seat);
      const state =
        conflict.state === "sold" || conflict.state === "blocked" ? conflict.state : "held";
      this.inventory.applyAnswer([conflict.seat], state, problem.seq);
    }
    if (conflicts.length === 0) this.wanted = held;
    this.refuse(problem, asked, null);
  }

  /** Units are ours by another hold (another tab, a lost reply): that hold becomes this one. */
  async adopt() {
    if (this.hold) {
      await this.reread();
      return false;
    }
    const hold = await this.listedHold();
    if (!hold) return false;
    this.accept(hold);
    this.wanted = this.held.add(this.wanted.requests().filter((unit) => "seat" in unit));
    return true;
  }

  /** @param {import("./wire.js").Problem} problem @param {UnitRequest[]} asked @param {Basket|null} again */
  refuse(problem, asked, again) {
    this.refusal = { problem, asked, again };
    this.changed();
    this.dispatchEvent(new Event("refused"));
  }

  /** @param {unknown} error */
  failed(error) {
    if (error instanceof Abandoned) return null;
    console.error(error);
    this.wanted = this.held;
    this.refuse(
      { status: 0, code: "unexpected", detail: "Something went wrong here. Please try again." },
      [],
      null,
    );
    return null;
  }

  /** @param {"idle"|"unsent"|"waiting"} trouble */
  inTrouble(trouble) {
    if (this.trouble === trouble) return;
    this.trouble = trouble;
    this.changed();
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }
}
