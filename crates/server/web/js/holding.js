// The shopper's hold on one event. Keeps two things apart: what the server last said is held, and
// what the shopper wants. Clicks only change what is wanted; the worker (holdworker.js) turns the
// one into the other, and the server's answer always decides.

import { Refused, hadSession, newKey, paths } from "./api.js";
import { difference } from "./basket.js";
import { money, sentenceList } from "./format.js";
import { forgetHold, storeBookingSecret, storeHold, storedHold } from "./holdstore.js";
import { rememberBooking } from "./links.js";
import { HoldWorker, isLive } from "./holdworker.js";

/** @typedef {import("./wire.js").Booking} Booking */
/** @typedef {import("./wire.js").UnitRequest} UnitRequest */
/** @typedef {import("./basket.js").Basket} Basket */
/** @typedef {"restore"|"best"|"extend"|"confirm"|"pay"|"charge"|"prove"|"abandon"} Doing */

export class Holding extends HoldWorker {
  /** @type {Doing|null} */
  doing = null;
  /** What the server chose last, and whether it lies together. @type {{units: Basket, together: boolean}|null} */
  chosen = null;

  close() {
    this.closed = true;
  }

  /** @param {string} seat */
  toggle(seat) {
    const own = this.wanted.seats.has(seat);
    this.want((wanted) => (own ? wanted.drop([{ seat }]) : wanted.add([{ seat }])));
  }

  /** @param {string} area @param {number} quantity */
  setArea(area, quantity) {
    this.want((wanted) => wanted.setQuantity(area, quantity));
  }

  /** Takes an offered alternative in the place of what was refused. */
  take(/** @type {UnitRequest[]} */ units, /** @type {UnitRequest[]} */ instead) {
    this.want((wanted) => wanted.drop(instead).add(units));
  }

  release() {
    this.want((wanted) => wanted.drop(wanted.requests()));
  }

  /** @param {(wanted: Basket) => void} change */
  want(change) {
    if (this.closed || this.doing === "confirm" || this.doing === "pay") return;
    const next = this.wanted.copy();
    change(next);
    const max = this.event.policy?.units_per_hold_max ?? 64;
    this.refusal = null;
    if (next.size > max && next.size > this.wanted.size) {
      const detail = `At most ${max} at a time here. Take one away to choose another.`;
      this.refuse({ status: 400, code: "too_many_units", detail }, [], null);
      return;
    }
    if (next.size > 0) this.ended = null;
    this.setWanted(next);
    this.lane.run(() => this.reconcile()).catch((error) => this.failed(error));
  }

  /**
   * The best N together; they take the place of what is held, once they are ours.
   * @param {number} quantity @param {string|null} category
   * @returns {Promise<import("./wire.js").Hold|null>}
   */
  best(quantity, category) {
    const body = { best: { quantity, ...(category ? { category } : {}), together: "preferred" } };
    const instead = this.wanted.requests();
    return this.exclusively("best", instead, async () => {
      await this.reconcile();
      const before = this.wanted.copy();
      const old = this.hold;
      const hold = await this.send("POST", paths.newHold(this.event.id), body, newKey());
      const since = difference(before, this.wanted);
      this.switchTo(hold);
      this.chosen = { units: this.held, together: hold.together !== false };
      this.setWanted(this.held.drop(since.drop).add(since.add));
      if (old) await this.giveBack(old);
      await this.reconcile();
      return hold;
    });
  }

  /**
   * In what the seats that the server chose are less than was asked for: empty if in nothing, or if
   * the shopper has changed them since.
   * @param {import("./plan.js").Plan} plan
   */
  compromise(plan) {
    if (!this.chosen?.units.equals(this.wanted)) return "";
    const { currency } = this.event;
    const kinds = new Set([...this.wanted.seats].map((id) => plan.categoryOf(id)));
    const names = [...kinds].map(({ name, price }) => `${name} (${money(price, currency)})`);
    const apart = this.chosen.together ? "" : "They are not all side by side: there were no such seats. ";
    const mixed = names.length > 1 ? `They are of different categories: ${sentenceList(names)}.` : "";
    return (apart + mixed).trim();
  }

  extend() {
    return this.exclusively("extend", [], async () => {
      if (!this.hold) return null;
      this.accept(await this.send("POST", paths.extend(this.hold.id), {}));
      return this.hold;
    });
  }

  /** @returns {Promise<Booking|{id: string}|null>} */
  confirm() {
    const agreed = this.wanted.copy();
    return this.exclusively("confirm", [], async () => {
      await this.reconcile();
      const { hold } = this;
      // What the shopper agreed to must be exactly what is held; otherwise the refusal shows.
      if (!hold || !agreed.equals(this.held)) return null;
      // Kept until the answer is known, over reloads too: the same confirm, never a second one.
      const stored = { ...storedHold(this.event.id), id: hold.id };
      const { fence } = hold;
      if (!stored.confirmKey || stored.confirmFence !== fence) {
        Object.assign(stored, { confirmKey: newKey(), confirmFence: fence });
      }
      storeHold(this.event.id, stored);
      // The fence: what another tab added meanwhile is not bought unseen.
      const path = paths.confirm(hold.id);
      const booking = await this.send("POST", path, { fence }, stored.confirmKey);
      this.inventory.applyAnswer(this.held.seats, "sold", booking.seq);
      storeBookingSecret(booking.id, hold.secret);
      rememberBooking(booking.id, booking.secret);
      this.clear();
      return booking;
    });
  }

  /** Holds again what an ended hold had, as far as it is free. */
  holdAgain(/** @type {UnitRequest[]} */ units) {
    this.ended = null;
    this.want((wanted) => wanted.add(units));
  }

  /** @param {"refusal"|"ended"} what */
  dismiss(what) {
    this[what] = null;
    this.changed();
  }

  /** Finds the hold of an earlier visit: the stored one first, then the server's list. */
  restore() {
    return this.exclusively("restore", [], async () => {
      if (!hadSession()) return;
      const stored = storedHold(this.event.id);
      const known = stored && (await this.fetchHold(stored.id, stored.secret));
      const hold = known ?? (await this.listedHold());
      if (!hold) return;
      if (isLive(hold)) {
        this.accept({ ...hold, secret: stored?.id === hold.id ? stored?.secret : undefined });
        this.setWanted(this.held.add(this.wanted.requests()));
        await this.reconcile();
      } else {
        this.recallEnded(hold, stored);
      }
    });
  }

  /** @param {import("./wire.js").Hold} hold @param {import("./holdstore.js").StoredHold|null} stored */
  recallEnded(hold, stored) {
    forgetHold(this.event.id);
    // A confirm or a payment whose answer got lost is answered here; another ended hold is old news,
    // unless its time ran out while the page was away and nothing else is wanted by now.
    const buying = Boolean(stored?.confirmKey ?? stored?.payKey);
    if (hold.state === "consumed" && hold.booking && buying) this.end(hold);
    else if (stored?.charged) this.dispatchEvent(new CustomEvent("booked", { detail: stored.charged }));
    else if (hold.state === "expired" || hold.state === "revoked" || hold.state === "active") {
      if (this.wanted.size === 0) this.end(hold);
    }
  }

  /** Asks how the hold stands: its time seems over, or the page was away. */
  async recheck() {
    await this.lane
      .run(async () => {
        await this.catchUp();
        await this.reconcile();
      })
      .catch((error) => this.failed(error));
  }

  /**
   * Runs one job of the named kind; a second press of the same button does nothing.
   * @template T
   * @param {Doing} doing @param {UnitRequest[]} instead  What an alternative replaces.
   * @param {() => Promise<T>} job @returns {Promise<T|null>}
   */
  async exclusively(doing, instead, job) {
    if (this.doing && this.doing !== "restore") return null;
    if (doing !== "restore") this.refusal = null;
    this.doing = doing;
    this.changed();
    try {
      return await this.lane.run(async () => {
        try {
          return await job();
        } catch (error) {
          // Nobody asked for the restoring; a server closed to shoppers simply has nothing.
          if (doing === "restore" && error instanceof Refused) return null;
          return await this.settleRefusal(error, instead, null);
        }
      });
    } catch (error) {
      return this.failed(error);
    } finally {
      if (this.doing === doing) this.doing = null;
      this.changed();
    }
  }
}
