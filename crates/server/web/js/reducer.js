// Every change of the shopper's hold and payment: a state and what happened give the next state.
// Pure: no server, no page, no clock, no randomness.

import { RECONCILING, answered, followBooking, paying, refuse, refused, stall } from "./answers.js";
import { Basket, difference, heldIn } from "./basket.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Action} Action */
/** @typedef {import("./state.js").Command} Command */
/** @typedef {import("./state.js").Press} Press */

// More commands than that means the answers and our arithmetic disagree: take the server's word.
const ROUNDS_MAX = 8;
const UNEXPECTED = { status: 0, code: "unexpected", detail: "Something went wrong here. Please try again." };

/**
 * @param {import("./wire.js").SaleEvent} event @param {import("./wire.js").Payments} payments
 * @param {State["restoring"]} restoring  Of the first state: what is chosen before an earlier hold is found joins it.
 * @returns {State}
 */
export function initial(event, payments, restoring) {
  return {
    event,
    payments,
    requested: null,
    hold: null,
    wanted: new Basket(),
    replaced: null,
    chosen: null,
    restoring,
    task: null,
    inDoubt: false,
    unanswered: null,
    isStalled: false,
    elsewhere: null,
    pending: null,
    rounds: 0,
    trouble: { kind: "none" },
    refusal: null,
    ended: null,
    payment: null,
    kept: {},
    booked: null,
  };
}

/** Actions by which the shopper goes on: what could not be read is asked for again. */
const GOING_ON = ["toggle", "area", "swap", "again", "press", "recheck"];

/** @param {State} state @param {Action} action @returns {State} */
export function reduce(state, action) {
  const goesOn = state.isStalled && GOING_ON.includes(action.type);
  return settle(step(goesOn ? { ...state, isStalled: false } : state, action));
}

/** @param {State} state @param {Action} action @returns {State} */
function step(state, action) {
  switch (action.type) {
    case "terms":
      return { ...state, event: action.event };
    case "toggle": {
      const units = [{ seat: action.seat }];
      const isOwn = state.wanted.seats.has(action.seat);
      return want(state, isOwn ? state.wanted.minus(units) : state.wanted.plus(units));
    }
    case "area":
      return want(state, state.wanted.withArea(action.area, action.quantity));
    case "swap":
      return swap(state, action);
    case "again":
      return again(state);
    case "press":
      return press(state, action.press);
    case "dismiss": {
      const next = { ...state, [action.what]: null };
      // What waits for an answer that is not asked for any more would wait for ever.
      return state.isStalled ? { ...next, task: null, wanted: heldIn(state) } : next;
    }
    case "recheck":
      return { ...state, inDoubt: true };
    case "sent":
      return sent(state, action.command);
    case "answered":
      return state.booked ? { ...state, pending: null } : answered({ ...state, pending: null }, action);
    case "refused":
      return refused({ ...state, pending: null }, action.command, action.problem);
    case "unanswered":
      return { ...state, pending: null, inDoubt: true, unanswered: action.command.goal };
    case "broke":
      return stall({ ...state, pending: null, task: null, wanted: heldIn(state) }, UNEXPECTED);
    case "trouble":
      return { ...state, trouble: action.trouble };
    case "looked":
      return followBooking(state, action.booking);
  }
}

/** What follows from a state alone. @param {State} state @returns {State} */
function settle(state) {
  const { hold, task, wanted } = state;
  if (state.inDoubt && !hold) return settle({ ...state, inDoubt: false });
  const isBusy = state.pending || state.inDoubt || state.restoring || state.elsewhere;
  if (isBusy) return state;
  const held = heldIn(state);
  const isReconciled = held.equals(wanted);
  if (!isReconciled && state.rounds >= ROUNDS_MAX) {
    return settle(refuse({ ...state, wanted: held }, UNEXPECTED, [], difference(held, wanted)));
  }
  const isBuying = task?.kind === "confirm" || (task?.kind === "pay" && !task.begun);
  // What the shopper agreed to must be exactly what is held; otherwise the refusal shows.
  const isVoid = isBuying && isReconciled && !(hold && task.agreed.equals(held));
  return isVoid ? { ...state, task: null } : state;
}

/** @param {State} state @param {Basket} wanted @returns {State} */
function want(state, wanted) {
  const doing = state.task?.kind;
  if (doing === "confirm" || doing === "pay") return state;
  if (state.payment) return refusePaying(state);
  const max = state.event.policy.units_per_hold_max;
  if (wanted.size > max && wanted.size > state.wanted.size) {
    return refuse(state, { status: 400, code: "too_many_units", limit: max });
  }
  const ended = wanted.size > 0 ? null : state.ended;
  return { ...state, wanted, ended, rounds: 0, refusal: null };
}

/** @param {State} state @param {NonNullable<import("./state.js").Refusal["again"]>} change @returns {State} */
const swap = (state, { drop, add }) => want(state, state.wanted.minus(drop).plus(add));

/** @param {State} state @returns {State} */
function again(state) {
  const change = state.refusal?.again;
  if (!change) return state;
  const isSame = change.drop.length === 0 && change.add.length === 0;
  return isSame ? { ...state, refusal: null } : swap(state, change);
}

/** A second press changes nothing until the first is done.
 *  @param {State} state @param {Press} pressed @returns {State} */
function press(state, pressed) {
  const { hold, payment, wanted } = state;
  if (state.task) return state;
  const next = { ...state, refusal: null };
  switch (pressed.kind) {
    case "best":
      return payment ? refusePaying(state) : { ...next, task: pressed };
    case "extend":
      // Pressed again before the page showed that there is no more.
      return hold && hold.expires_at !== hold.max_expires_at ? { ...next, task: { kind: "extend" } } : state;
    case "abandon":
      return hold ? { ...next, task: { kind: "abandon" } } : state;
    case "confirm":
      return hold ? { ...next, task: { kind: "confirm", agreed: wanted } } : state;
    case "pay":
      return hold ? { ...next, task: paying(wanted) } : state;
    case "charge":
    case "prove": {
      if (!payment) return state;
      const kept = pressed.kind === "charge" ? { ...state.kept, charged: payment.booking } : state.kept;
      return { ...next, kept, task: pressed, payment: { ...payment, stage: "charging" } };
    }
  }
}

/** @param {State} state @returns {State} */
function refusePaying(state) {
  return state.task ? state : refuse(state, { status: 409, code: "payment_in_progress" });
}

/** Keys are kept before the command is sent: over a reload the same one, never a second one.
 *  @param {State} state @param {Command} command @returns {State} */
function sent(state, command) {
  const { kind, call } = command;
  const fence = state.hold?.fence;
  const rounds = RECONCILING.includes(kind) ? state.rounds + 1 : state.rounds;
  const next = { ...state, pending: command, rounds };
  if (kind === "hold" || kind === "best") return { ...next, requested: call };
  if (kind === "confirm") return { ...next, kept: { ...state.kept, confirmKey: call.key, confirmFence: fence } };
  if (kind === "checkout") return { ...next, kept: { ...state.kept, payKey: call.key, payFence: fence } };
  return next;
}
