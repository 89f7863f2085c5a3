// From a hold to its money: what the booking says of the payment leads the page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canBuy } from "../../web/js/selectors.js";
import { Shopper } from "./shopper.mjs";
import { EVENT, FakeServer } from "./server.mjs";

const PAID = /** @type {any} */ ({ provider: "demo", free_sales: false, demo_cards: [] });
const BOOKING = "booking-hold-1";

/** A server whose holds are paid: checkout pins, the bank answers as it is told. */
class Shop extends FakeServer {
  said = "created";
  state = "pending_payment";
  taken = true;

  /** @param {any} call @returns {any} */
  answer(call) {
    switch (call.route) {
      case "POST /v1/holds/{hold}/checkout": {
        const hold = this.active(call.id);
        Object.assign(hold, { state: "pinned", booking: BOOKING });
        return { ...this.booking(), secret: "bs_1", payment: { intent: "pi_1", client_secret: "secret", state: "created" } };
      }
      case "GET /v1/bookings/{booking}":
        return this.booking();
      case "POST /v1/holds/{hold}/abandon":
        return this.unpin();
      case "POST /demo/payments/{intent}":
      case "POST /demo/payments/{intent}/answer":
        return { taken: this.taken };
      default:
        return super.answer(call);
    }
  }

  unpin() {
    this.state = "failed";
    const hold = this.holdOf("hold-1");
    hold.state = "active";
    return this.shown(hold);
  }

  booking() {
    return { id: BOOKING, state: this.state, payment: { state: this.said } };
  }
}

/** A shopper who holds a seat and has begun to pay. */
function payer() {
  const shop = new Shop(4);
  const shopper = new Shopper(shop, PAID);
  shopper.toggle("A-1");
  shopper.settle();
  shopper.press({ kind: "pay" });
  shopper.settle();
  /** The page looks at the booking. @param {string} state @param {string} said */
  const look = (state, said) => {
    Object.assign(shop, { state, said });
    shopper.dispatch({ type: "looked", booking: /** @type {any} */ (shop.booking()) });
    shopper.settle();
    return shopper.state;
  };
  return { shop, shopper, look };
}

test("checkout pins what was seen, and a good card leads to the booking", () => {
  const { shopper, look } = payer();
  assert.deepEqual(shopper.sent.map(({ kind }) => kind), ["hold", "checkout", "booking", "read"]);
  assert.equal(shopper.state.payment?.stage, "choose");
  assert.equal(shopper.state.hold?.state, "pinned");
  shopper.press({ kind: "charge", card: "good" });
  assert.equal(shopper.state.payment?.stage, "charging");
  shopper.settle();
  assert.deepEqual(look("confirmed", "captured").booked, { id: BOOKING, isLate: false });
});

test("after a decline another card pays by the same payment", () => {
  const { shop, shopper, look } = payer();
  shop.taken = false;
  shopper.press({ kind: "charge", card: "declined" });
  shopper.settle();
  assert.equal(shopper.state.payment?.stage, "again");
  shop.taken = true;
  shopper.press({ kind: "charge", card: "good" });
  // The booking still speaks of the card before.
  assert.equal(look("pending_payment", "declined").payment?.stage, "charging");
  assert.equal(look("pending_payment", "action_required").payment?.stage, "bank");
  assert.equal(look("pending_payment", "processing").payment?.stage, "silent");
});

test("seats cannot be changed while they are paid", () => {
  const { shopper } = payer();
  shopper.toggle("A-2");
  shopper.press({ kind: "best", quantity: 2, category: null });
  assert.equal(shopper.state.refusal?.problem.code, "payment_in_progress");
  assert.deepEqual(shopper.wanted, ["A-1"]);
});

test("the way back keeps the seats, and the next payment has a key of its own", () => {
  const { shop, shopper } = payer();
  shopper.press({ kind: "abandon" });
  shopper.settle();
  assert.deepEqual([shopper.state.payment, shopper.held], [null, ["A-1"]]);
  Object.assign(shop, { state: "pending_payment" });
  shopper.press({ kind: "pay" });
  shopper.settle();
  const keys = shopper.sent.filter(({ kind }) => kind === "checkout").map(({ call }) => call.key);
  assert.equal(new Set(keys).size, 2);
});

test("the way back takes over what another tab chose after it went back first", () => {
  const { shop, shopper } = payer();
  shop.unpin();
  shop.change(shop.holdOf("hold-1"), { add: [{ seat: "A-2" }] });
  shopper.press({ kind: "abandon" });
  shopper.settle();
  assert.deepEqual([shopper.held, shopper.wanted], [["A-1", "A-2"], ["A-1", "A-2"]]);
});

test("a reload finds the payment by its key", () => {
  const { shopper } = payer();
  shopper.reload();
  shopper.settle();
  assert.equal(shopper.state.payment?.stage, "choose");
  const keys = shopper.sent.filter(({ kind }) => kind === "checkout").map(({ call }) => call.key);
  assert.deepEqual([keys.length, new Set(keys).size], [2, 1]);
});

test("a key whose payment failed begins a second one, and not a third", () => {
  const { shop, shopper } = payer();
  shop.unpin();
  shop.holdOf("hold-1").state = "pinned";
  shopper.reload();
  shopper.hear();
  shop.unpin();
  shopper.settle();
  assert.deepEqual([shopper.state.payment, shopper.state.task], [null, null]);
  assert.equal(shopper.sent.filter(({ kind }) => kind === "checkout").length, 3);
});

test("a tab without the key watches the payment of another", () => {
  const { shopper, look } = payer();
  shopper.stored = null;
  shopper.reload();
  shopper.settle();
  assert.equal(shopper.state.payment?.stage, "elsewhere");
  assert.deepEqual(look("confirmed", "captured").booked, { id: BOOKING, isLate: false });
});

test("a window that presses anything while another one pays watches that payment", () => {
  /** @type {((shopper: Shopper) => void)[]} */ const acts = [
    (shopper) => shopper.press({ kind: "pay" }),
    (shopper) => shopper.press({ kind: "extend" }),
    (shopper) => shopper.toggle("A-2"),
    (shopper) => shopper.toggle("A-2", "A-3"),
  ];
  for (const act of acts) {
    for (const isReloaded of [false, true]) {
      const shop = new Shop(4);
      const shopper = new Shopper(shop, PAID);
      shopper.toggle("A-1");
      shopper.settle();
      Object.assign(shop.holdOf("hold-1"), { state: "pinned", booking: BOOKING });
      act(shopper);
      if (isReloaded) shopper.reload();
      shopper.settle();
      const { payment, refusal, task } = shopper.state;
      assert.deepEqual([payment?.stage, payment?.booking, task], ["elsewhere", BOOKING, null], `${act}`);
      assert.deepEqual([shopper.held, shopper.wanted], [["A-1"], ["A-1"]], `${act}`);
      if (!isReloaded) assert.equal(refusal?.problem.code, "payment_in_progress", `${act}`);
    }
  }
});

test("a release that came too late ends no payment of another window", () => {
  const shop = new Shop(4);
  const shopper = new Shopper(shop, PAID);
  shopper.toggle("A-1", "A-2");
  shopper.settle();
  const hold = shop.holdOf("hold-1");
  shop.change(hold, { drop: [{ seat: "A-1" }] });
  Object.assign(hold, { state: "pinned", booking: BOOKING });
  shopper.toggle("A-1", "A-2");
  shopper.settle();
  assert.equal(shopper.state.payment?.stage, "elsewhere");
  assert.deepEqual([hold.state, shopper.held, shopper.wanted], ["pinned", ["A-2"], ["A-2"]]);
});

test("a payment that failed gives the seats back to choose again, or ends the hold by its event's policy", () => {
  const kept = payer();
  kept.shopper.press({ kind: "charge", card: "declined" });
  kept.shopper.settle();
  kept.shop.unpin();
  assert.deepEqual([kept.look("failed", "declined").payment, kept.shopper.held], [null, ["A-1"]]);
  const ended = payer();
  ended.shopper.dispatch({ type: "terms", event: { ...EVENT, policy: { ...EVENT.policy, on_payment_failure: "release" } } });
  Object.assign(ended.shop, { taken: false });
  ended.shopper.press({ kind: "charge", card: "declined" });
  ended.shopper.settle();
  assert.equal(ended.shopper.state.payment?.stage, "charging");
  ended.shop.end(ended.shop.holdOf("hold-1"), "released");
  assert.equal(ended.look("failed", "declined").ended?.state, "payment_failed");
});

test("the booking tells what became of a card when the time ran out, without a card the notice does", () => {
  const late = payer();
  late.shopper.press({ kind: "charge", card: "slow" });
  late.shopper.settle();
  assert.deepEqual(late.look("expired", "processing").booked, { id: BOOKING, isLate: true });
  // The hold may be read before the booking is.
  const read = payer();
  read.shopper.press({ kind: "charge", card: "slow" });
  read.shop.end(read.shop.holdOf("hold-1"), "expired");
  read.shopper.dispatch({ type: "recheck" });
  read.shopper.settle();
  assert.deepEqual(read.shopper.state.booked, { id: BOOKING, isLate: true });
  const early = payer();
  early.shop.end(early.shop.holdOf("hold-1"), "expired");
  assert.equal(early.look("expired", "created").ended?.state, "expired");
});

test("a bank that has gone on meanwhile is no refusal", () => {
  const { shopper } = payer();
  shopper.press({ kind: "prove", ok: true });
  const command = shopper.state.pending;
  assert.ok(command);
  shopper.take(command, { problem: { status: 409, code: "payment_refused" } });
  assert.deepEqual([shopper.state.refusal, shopper.state.task], [null, null]);
});

test("where a provider takes real cards, the page sells what costs nothing and no more", () => {
  const real = { payments: { ...PAID, provider: "stripe" } };
  assert.deepEqual([canBuy(real, 0), canBuy(real, 100)], [true, false]);
  const demo = { payments: { ...PAID, demo_cards: [{ card: "good" }] } };
  assert.equal(canBuy(demo, 100), true);
});
