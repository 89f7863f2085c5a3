// The effects of the shopper's hold: sends the command that the state asks for, keeps what a reload
// must not lose, tells the map what answers say of seats, and looks at a booking while it is paid.
// Decides nothing: every change is made by reducer.js.

import { Refused, Unreachable, asShopper, hadSession, listAll, newKey } from "./api.js";
import { Abandoned, insist } from "./attempts.js";
import { isSettled, nextCommand, seatChanges } from "./commands.js";
import { forgetHold, storeBookingSecret, storeHold, storedHold } from "./holdstore.js";
import { rememberBooking } from "./links.js";
import { initial, reduce } from "./reducer.js";
import { late } from "./ticket.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Action} Action */
/** @typedef {import("./state.js").Command} Command */

/** How long after one look at a booking the next one comes, by the stage of its payment. */
const LOOK_MS = { choose: 3000, again: 3000, charging: 300, bank: 1500, silent: 1000, elsewhere: 1500 };

export class Holding extends EventTarget {
  /**
   * @param {import("./wire.js").SaleEvent} event @param {import("./inventory.js").Inventory} inventory
   * @param {import("./wire.js").Payments} payments  How bookings are paid here.
   */
  constructor(event, inventory, payments) {
    super();
    this.inventory = inventory;
    this.state = initial(event, payments, earlierHold(event));
    this.closed = false;
    /** @type {ReturnType<typeof setTimeout>|undefined} */ this.looking = undefined;
    /** How many looks at the booking began. */ this.looks = 0;
    /** @type {import("./attempts.js").AttemptWatch} */
    this.watch = {
      abandoned: () => this.closed,
      reached: () => this.inTrouble({ kind: "none" }),
      unreachable: () => this.inTrouble({ kind: "unsent" }),
      waiting: (ms) => this.inTrouble({ kind: "waiting", until: performance.now() + ms }),
    };
  }

  close() {
    this.closed = true;
    clearTimeout(this.looking);
  }

  get settled() {
    return isSettled(this.state);
  }

  /** @param {import("./state.js").Press} press */
  press(press) {
    this.dispatch({ type: "press", press });
  }

  release() {
    this.dispatch({ type: "swap", drop: this.state.wanted.requests(), add: [] });
  }

  /** @param {Action} action */
  dispatch(action) {
    if (this.closed) return;
    const before = this.state;
    this.state = reduce(before, action);
    if (this.state === before) return;
    for (const { seats, state, seq } of seatChanges(before, this.state, action)) {
      this.inventory.applyAnswer(seats, state, seq);
    }
    this.keep(before, action);
    // After this task: what is pressed at once goes out as one command.
    queueMicrotask(() => this.send());
    this.follow(before, action);
    this.dispatchEvent(new Event("change"));
    const { booked } = this.state;
    if (booked && !before.booked) this.dispatchEvent(new CustomEvent("booked", { detail: booked.id }));
  }

  /** @param {import("./state.js").Trouble} trouble */
  inTrouble(trouble) {
    const { kind } = this.state.trouble;
    if (kind !== trouble.kind || kind === "waiting") this.dispatch({ type: "trouble", trouble });
  }

  /** Sends what the state asks for: at first, to look for the hold of an earlier visit. */
  send() {
    const command = nextCommand(this.state, newKey());
    if (!command || this.closed) return;
    this.dispatch({ type: "sent", command });
    this.perform(command);
  }

  /** @param {Command} command */
  async perform(command) {
    const { kind, call } = command;
    const attempt = () => (kind === "list" ? listAll(asShopper, "GET /v1/holds") : asShopper(call));
    try {
      const repetition = call.isOnce ? "unsafe-to-repeat" : call.isPatient ? "patient" : "repeatable";
      const answer = await insist(attempt, this.watch, repetition);
      this.dispatch({ type: "answered", kind, command, answer: /** @type {any} */ (answer) });
    } catch (error) {
      if (error instanceof Refused) this.dispatch({ type: "refused", command, problem: error.problem });
      else if (error instanceof Unreachable) this.dispatch({ type: "unanswered", command });
      else if (!(error instanceof Abandoned)) this.broke(error);
    }
  }

  /** @param {unknown} error */
  broke(error) {
    console.error(error);
    this.dispatch({ type: "broke" });
  }

  /** Stores what a reload, or the page of the booking, needs. @param {State} before @param {Action} action */
  keep(before, action) {
    const { event, hold, kept, payment, booked } = this.state;
    const isFound = action.type === "answered" && action.kind === "find";
    if (hold !== before.hold || kept !== before.kept || isFound) {
      if (hold) storeHold(event.id, { id: hold.id, secret: hold.secret, ...kept });
      else forgetHold(event.id);
    }
    const secret = hold?.secret ?? before.hold?.secret;
    if (payment && payment.booking !== before.payment?.booking) storeBookingSecret(payment.booking, secret);
    if (booked && !before.booked) {
      storeBookingSecret(booked.id, secret);
      if (booked.isLate) late.add(booked.id);
    }
    if (action.type !== "answered") return;
    if (action.kind === "confirm" || action.kind === "checkout") {
      rememberBooking(action.answer.id, action.answer.secret);
    }
  }

  /** Reads the booking at once when the bank has answered, and later as long as the payment is open.
   *  @param {State} before @param {Action} action */
  follow(before, action) {
    const { payment } = this.state;
    const isAnswer = action.type === "answered" || action.type === "refused";
    if (isAnswer && ["charge", "prove"].includes(action.command.kind)) this.lookIn(0);
    else if (payment?.stage !== before.payment?.stage || payment?.booking !== before.payment?.booking) this.lookIn();
  }

  /** @param {number} [ms] */
  lookIn(ms) {
    clearTimeout(this.looking);
    const { payment } = this.state;
    if (this.closed || !payment) return;
    this.looking = setTimeout(() => this.look(payment.booking), ms ?? LOOK_MS[payment.stage]);
  }

  /** @param {string} booking */
  async look(booking) {
    const look = (this.looks += 1);
    const secret = this.state.hold?.secret;
    const call = asShopper({ route: "GET /v1/bookings/{booking}", id: booking, secret });
    // Without an answer it is asked again, and the connection says so elsewhere.
    const answer = await call.catch(() => null);
    // A later look saw what is true now.
    if (look !== this.looks) return;
    if (answer) this.dispatch({ type: "looked", booking: answer });
    this.lookIn();
  }
}

/** What may be left of an earlier visit. @param {import("./wire.js").SaleEvent} event */
function earlierHold({ id, state }) {
  if (!hadSession() || state === "cancelled") return null;
  const stored = storedHold(id);
  return { stored, isUnknown: stored === null };
}
