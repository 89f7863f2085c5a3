// From a hold to its money. Checkout pins the hold; what became of the payment is read from the
// booking alone, so that a reload, another window or a lost answer leads to the same place. A card
// is charged where the server says: in a demo at its own desk, elsewhere by the provider's script.

import { Refused, asShopper, newKey, paths } from "./api.js";
import { Holding } from "./holding.js";
import { storeBookingSecret, storeHold, storedHold } from "./holdstore.js";
import { rememberBooking } from "./links.js";
import { isLive } from "./holdworker.js";
import { late } from "./ticket.js";

/** @typedef {import("./wire.js").Booking} Booking */
/** @typedef {import("./wire.js").Hold} Hold */
/** @typedef {"choose"|"again"|"charging"|"bank"|"silent"|"elsewhere"} Stage
 *  To choose a card; another one after a decline; no word yet; the bank asks the buyer; the bank is
 *  silent; another window pays. */
/** @typedef {{booking: string, intent: string, clientSecret: string, stage: Stage}} Payment */

const LOOK_MS = {
  choose: 3000,
  again: 3000,
  charging: 300,
  bank: 1500,
  silent: 1000,
  elsewhere: 1500,
};

export class Paying extends Holding {
  /** @type {Payment|null} */
  payment = null;
  /** The last state of the payment that is known. */
  heard = "created";
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  looking = undefined;

  /**
   * @param {import("./wire.js").SaleEvent} event @param {import("./inventory.js").Inventory} inventory
   * @param {import("./wire.js").Payments} payments  How bookings are paid here.
   */
  constructor(event, inventory, payments) {
    super(event, inventory);
    this.payments = payments;
  }

  close() {
    super.close();
    clearTimeout(this.looking);
  }

  /** Whether what is held must be paid here. */
  get mustPay() {
    return this.payments.provider !== null && (this.hold?.total ?? 1) > 0;
  }

  /** Whether what costs so much can be bought on this page at all. @param {number} total */
  canBuy(total) {
    const { provider, free_sales: free } = this.payments;
    return provider !== null || free || total === 0;
  }

  /** @param {(wanted: import("./basket.js").Basket) => void} change */
  want(change) {
    if (this.payment) this.refusePaying();
    else super.want(change);
  }

  /** @param {number} quantity @param {string|null} category */
  async best(quantity, category) {
    if (!this.payment) return super.best(quantity, category);
    this.refusePaying();
    return null;
  }

  refusePaying() {
    if (this.doing === null) this.refuse({ status: 409, code: "payment_in_progress" }, [], null);
  }

  /** Begins the payment of exactly what the shopper has seen. */
  pay() {
    const agreed = this.wanted.copy();
    return this.exclusively("pay", [], async () => {
      await this.reconcile();
      if (this.hold && agreed.equals(this.held)) await this.checkout();
    });
  }

  /** Pays with a test card. @param {string} card */
  charge(card) {
    return this.exclusively("charge", [], async () => {
      if (!this.payment) return;
      const { booking, intent, clientSecret } = this.payment;
      storeHold(this.event.id, { ...this.stored(), charged: booking });
      this.enter("charging");
      const body = { client_secret: clientSecret, card };
      const answer = await this.atDesk(paths.demoCharge(intent), body);
      const isOver = this.event.policy?.on_payment_failure === "release";
      if (answer?.taken === false && !isOver) this.hearPending("declined", "fresh");
    });
  }

  /** What the buyer tells the bank. @param {boolean} ok */
  prove(ok) {
    return this.exclusively("prove", [], async () => {
      if (!this.payment) return;
      const { intent, clientSecret } = this.payment;
      this.enter("charging");
      await this.atDesk(paths.demoAnswer(intent), { client_secret: clientSecret, ok });
    });
  }

  /** Gives the payment up: the seats stay held, to choose again. */
  abandon() {
    return this.exclusively("abandon", [], async () => {
      const { hold } = this;
      if (!hold) return;
      const answer = await this.send("POST", paths.abandon(hold.id), {});
      this.forgetPayment();
      if (isLive(answer)) this.accept(answer);
      else this.end(answer);
    });
  }

  /** @param {string} path @param {object} body @returns {Promise<{taken: boolean}|undefined>} */
  async atDesk(path, body) {
    try {
      return await this.send("POST", path, body);
    } catch (error) {
      // It went on meanwhile: what became of it stands in the booking.
      if (!(error instanceof Refused) || error.code !== "payment_refused") throw error;
      return undefined;
    } finally {
      this.follow(0);
    }
  }

  /** Opens a payment, or finds the one that was opened with the stored key. */
  async checkout() {
    const { hold } = this;
    if (!hold) return;
    for (let round = 0; round < 2; round += 1) {
      const stored = this.stored();
      if (!stored.payKey || stored.payFence !== hold.fence) {
        Object.assign(stored, { payKey: newKey(), payFence: hold.fence });
      }
      // Kept over reloads: the same payment, never a second one.
      storeHold(this.event.id, stored);
      const path = paths.checkout(hold.id);
      const begun = await this.begin(path, stored);
      storeBookingSecret(begun.id, hold.secret);
      rememberBooking(begun.id, begun.secret);
      const booking = await this.fetchBooking(begun.id);
      if (booking.state === "failed") {
        // The key is that of an earlier payment, which is over.
        this.forgetPayment();
        continue;
      }
      const { intent, client_secret: clientSecret } = begun.payment;
      this.payment = { booking: begun.id, intent, clientSecret, stage: "choose" };
      this.heard = "created";
      await this.reread();
      await this.hear(booking);
      this.follow();
      return;
    }
  }

  /** @param {string} path @param {import("./holdstore.js").StoredHold} stored */
  async begin(path, { payKey, payFence }) {
    try {
      return await this.send("POST", path, { fence: payFence }, payKey);
    } catch (error) {
      if (error instanceof Refused && error.code === "payment_refused") {
        this.forgetPayment();
        await this.reread();
      }
      throw error;
    }
  }

  /** A payment that was under way before the reload, or is in another window. */
  async resume() {
    if (this.hold?.state !== "pinned" || this.payment) return;
    if (this.stored().payKey) await this.checkout();
    else this.watchElsewhere();
  }

  watchElsewhere() {
    const booking = this.hold?.booking;
    if (!booking) return;
    storeBookingSecret(booking, this.hold?.secret);
    this.payment = { booking, intent: "", clientSecret: "", stage: "elsewhere" };
    this.follow();
    this.changed();
  }

  async restore() {
    const restored = await super.restore();
    if (this.hold) await this.exclusively("restore", [], () => this.resume());
    return restored;
  }

  /** @param {string} id @returns {Promise<Booking>} */
  fetchBooking(id) {
    return asShopper("GET", paths.booking(id), { secret: this.hold?.secret });
  }

  /** Looks at the booking again, by and by. */
  follow(ms = this.payment ? LOOK_MS[this.payment.stage] : 0) {
    clearTimeout(this.looking);
    if (this.closed || !this.payment) return;
    this.looking = setTimeout(() => this.look(), ms);
  }

  async look() {
    const { payment } = this;
    if (!payment) return;
    try {
      const booking = await this.fetchBooking(payment.booking);
      if (this.payment === payment) await this.lane.run(() => this.hear(booking));
    } catch {
      // Nobody answered: it is asked again, and the connection says so elsewhere.
    }
    this.follow();
  }

  /** Takes the booking's word for how the payment stands. @param {Booking} booking */
  async hear(booking) {
    if (!this.payment || this.closed) return;
    switch (booking.state) {
      case "pending_payment":
        this.hearPending(booking.payment?.state ?? "created");
        break;
      case "failed":
        await this.reread();
        this.forgetPayment();
        this.changed();
        break;
      case "expired":
        // A card that was charged may still bring money: the booking's page tells what became of it.
        if (this.stored().charged === booking.id) this.leaveLate(booking.id);
        else await this.reread();
        break;
      default:
        this.leave(booking.id);
    }
  }

  /**
   * @param {string} state  Of the payment.
   * @param {"fresh"|"read"} from  What was read of the booking may be about the card before.
   */
  hearPending(state, from = "read") {
    if (!this.payment || this.payment.stage === "elsewhere") return;
    const isOld = state === this.heard && from === "read";
    if (state !== "created") this.heard = state;
    if (isOld && state === "declined") return;
    if (state === "declined") this.enter("again");
    else if (state === "action_required") this.enter("bank");
    else if (state === "processing") this.enter("silent");
    else if (state !== "created") this.enter("charging");
  }

  /** @param {Stage} stage */
  enter(stage) {
    if (!this.payment || this.payment.stage === stage) return;
    this.payment.stage = stage;
    this.changed();
  }

  /** On to the page of the booking. @param {string} booking */
  leave(booking) {
    this.forgetPayment();
    this.clear();
    this.dispatchEvent(new CustomEvent("booked", { detail: booking }));
  }

  /** The same, once the hold has ended. @param {string} booking */
  leaveLate(booking) {
    late.add(booking);
    this.leave(booking);
  }

  stored() {
    const stored = storedHold(this.event.id);
    return stored?.id === this.hold?.id && stored ? stored : { id: this.hold?.id ?? "" };
  }

  forgetPayment() {
    clearTimeout(this.looking);
    this.payment = null;
    if (!this.hold) return;
    const { payKey, payFence, charged, ...rest } = this.stored();
    storeHold(this.event.id, { ...rest, id: this.hold.id });
  }

  /** @param {Hold} hold */
  accept(hold) {
    super.accept(hold);
    const busy = this.doing === "pay" || this.doing === "charge" || this.doing === "restore";
    if (hold.state === "pinned" && !this.payment && !busy) this.watchElsewhere();
    if (hold.state === "active" && this.payment) this.forgetPayment();
  }

  /** @param {Hold} hold */
  end(hold) {
    const { charged } = this.stored();
    const wasCharged = charged !== undefined && charged === this.payment?.booking;
    const failed = wasCharged && hold.state === "released";
    clearTimeout(this.looking);
    this.payment = null;
    if (charged && hold.state === "expired") {
      this.leaveLate(charged);
      return;
    }
    super.end(hold, failed ? "payment_failed" : hold.state);
  }
}
