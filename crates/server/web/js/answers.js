// What the server's answers and refusals make of the state, and what a booking says of its payment.
// Pure: no server, no page, no clock.

import { Basket, difference, heldIn } from "./basket.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Action} Action */
/** @typedef {import("./state.js").Command} Command */
/** @typedef {import("./wire.js").Booking} Booking */
/** @typedef {import("./wire.js").Hold} Hold */
/** @typedef {import("./wire.js").Problem} Problem */
/** @typedef {import("./wire.js").UnitRequest} UnitRequest */

const OVER = ["hold_expired", "hold_released", "hold_revoked", "hold_not_found", "hold_consumed"];
/** Commands that turn what is held into what is wanted. */
export const RECONCILING = ["hold", "change", "release"];

/** Whether a hold was live when the server wrote it. @param {Hold} hold */
function isLive(hold) {
  const isOpen = hold.state === "active" || hold.state === "pinned";
  const isOver = Date.parse(hold.server_time ?? "") >= Date.parse(hold.expires_at);
  return isOpen && !isOver;
}

/** Shows a refusal. @param {State} state @param {Problem} problem @param {UnitRequest[]} [asked]
 *  @param {import("./state.js").Refusal["again"]} [again] @returns {State} */
export function refuse(state, problem, asked = [], again = null) {
  return { ...state, refusal: { problem, asked, again } };
}

/** Says why nothing is sent until the shopper acts; the same reason is not told anew.
 *  @param {State} state @param {Problem} problem @returns {State} */
export function stall(state, problem) {
  const isTold = state.refusal?.again && state.refusal.problem.code === problem.code;
  const next = { ...state, isStalled: true };
  return isTold ? next : refuse(next, problem, [], { drop: [], add: [] });
}

/** @param {Basket} agreed @returns {import("./state.js").Task} */
export const paying = (agreed) => ({ kind: "pay", agreed, begun: null, isSecond: false });

/** @param {State} state @param {Extract<Action, {type: "answered"}>} action @returns {State} */
export function answered(state, action) {
  const done = { ...state, task: null };
  // Where the answer to a request that was made again is of a hold that is over by now, another one is asked for.
  const anew = { ...state, requested: null };
  // One that is live is read: the answer is that of then, and another window may have changed it since.
  const made = { ...anew, inDoubt: state.inDoubt || action.command.call.isAgain === true };
  switch (action.kind) {
    case "find":
      return found(state, action.answer);
    case "list":
      return listed(state, action.answer);
    case "read":
      return read(state, action.answer);
    case "hold":
      return isLive(action.answer) ? accept(made, action.answer) : anew;
    case "change":
      return accept(state, action.answer);
    case "extend":
      return merge(done, action.answer);
    case "release":
      return released(state, action.command);
    case "best":
      return isLive(action.answer) ? replace({ ...made, task: null }, action.command, action.answer) : anew;
    case "confirm":
      return leave(done, action.answer.id, false);
    case "checkout":
      return state.task?.kind === "pay" ? { ...state, task: { ...state.task, begun: action.answer } } : state;
    case "booking":
      return opened(state, action.answer);
    case "abandon": {
      const hold = action.answer;
      return isLive(hold) ? merge(forgetPayment(done), hold) : end(forgetPayment(done), hold);
    }
    case "charge": {
      // With this policy the seats are free again by now; the booking says so.
      const isOver = state.event.policy.on_payment_failure === "release";
      return action.answer?.taken === false && !isOver ? followPayment(done, "declined", "fresh") : done;
    }
    case "prove":
      return done;
  }
}

/** @param {State} state @param {Hold} hold @returns {State} */
function accept(state, hold) {
  const isSame = state.hold?.id === hold.id;
  const secret = hold.secret ?? (isSame ? state.hold?.secret : undefined);
  const kept = isSame ? state.kept : {};
  const next = { ...state, hold: { ...hold, secret }, kept, ended: null };
  const isOurs = state.task?.kind === "pay" || (state.payment && state.payment.booking === hold.booking);
  if (hold.state === "pinned" && !isOurs) return watch(next);
  return hold.state === "active" && state.payment ? forgetPayment(next) : next;
}

/** Another window pays for this hold. @param {State} state @returns {State} */
function watch(state) {
  const booking = state.hold?.booking;
  if (!booking) return state;
  return { ...state, payment: { booking, intent: "", clientSecret: "", stage: "elsewhere", reported: "created" } };
}

/** The hold as it is now: what another tab did to it is taken over in place of being undone, and what was chosen
 *  here is still wanted. @param {State} state @param {Hold} hold @param {ReturnType<typeof difference>} [chosen]
 *  @returns {State} */
function merge(state, hold, { drop, add } = difference(heldIn(state), state.wanted)) {
  const next = accept(state, hold);
  // Giving back what is being paid would end the payment; an addition is refused in words.
  const given = hold.state === "pinned" ? [] : drop;
  return { ...next, wanted: heldIn(next).minus(given).plus(add) };
}

/** @param {State} state @param {Hold} hold @returns {State} */
function read(state, hold) {
  const known = { ...state, inDoubt: false, unanswered: null };
  if (!isLive(hold)) return end(known, hold);
  const own = difference(heldIn(state), state.wanted);
  // Places are summed: those of a change that was done are in it already. Seats are the same twice.
  const isDone = state.unanswered && state.hold && hold.fence > state.hold.fence;
  const left = isDone ? difference(state.unanswered, state.wanted) : own;
  const change = [own.drop, own.add].map((units) => units.filter(isSeat));
  const [drop, add] = [left.drop, left.add].map((units, k) => [...change[k], ...units.filter((unit) => !isSeat(unit))]);
  return merge(known, hold, { drop, add });
}

/** @param {UnitRequest} unit */
const isSeat = (unit) => "seat" in unit;

/** What was chosen while it was given back is still wanted.
 *  @param {State} state @param {Command} command @returns {State} */
function released(state, { hold }) {
  if (hold?.id !== state.hold?.id) return { ...state, replaced: null };
  return { ...state, hold: null, kept: {} };
}

/** Another hold takes the place of the present one.
 *  @param {State} state @param {Command} command @param {Hold} hold @returns {State} */
function replace(state, { goal }, hold) {
  const since = difference(goal, state.wanted);
  const next = accept({ ...state, hold: null, replaced: state.hold }, hold);
  const held = heldIn(next);
  const chosen = { units: held, together: hold.together !== false };
  return { ...next, chosen, wanted: held.minus(since.drop).plus(since.add) };
}

/** The hold that this tab had before a reload. @param {State} state @param {Hold} hold @returns {State} */
function found(state, hold) {
  const stored = state.restoring?.stored;
  if (!stored) return state;
  const { id, secret, ...kept } = stored;
  return isLive(hold) ? restore(state, { ...hold, secret }, kept) : restoreEnded(state, hold, kept);
}

/** @param {State} state @param {Hold[]} holds @returns {State} */
function listed(state, holds) {
  const [hold] = holds
    .filter((one) => one.event === state.event.id && one.id !== state.hold?.id && isLive(one))
    .sort((a, b) => Date.parse(b.expires_at) - Date.parse(a.expires_at));
  if (state.restoring) return hold ? restore(state, hold, {}) : { ...state, restoring: null };
  const { elsewhere } = state;
  if (!elsewhere) return state;
  const next = { ...state, elsewhere: null };
  if (!hold) return lose(next, elsewhere.problem, elsewhere.asked);
  const seats = state.wanted.requests().filter((unit) => "seat" in unit);
  const taken = accept(next, hold);
  return { ...taken, wanted: heldIn(taken).plus(seats) };
}

/** @param {State} state @param {Hold} hold @param {import("./state.js").Kept} kept @returns {State} */
function restore(state, hold, kept) {
  const isPinned = hold.state === "pinned";
  const wanted = isPinned ? Basket.of(hold) : Basket.of(hold).plus(state.wanted.requests());
  const next = { ...state, restoring: null, hold, kept, wanted, ended: null };
  if (!isPinned) return next;
  return kept.payKey ? { ...next, task: paying(wanted) } : watch(next);
}

/**
 * An ended hold of an earlier visit: a confirm or a payment whose answer got lost is answered here;
 * another one is old news, unless its time ran out meanwhile and nothing else is wanted by now.
 * @param {State} state @param {Hold} hold @param {import("./state.js").Kept} kept @returns {State}
 */
function restoreEnded(state, hold, kept) {
  const next = { ...state, restoring: null };
  const isBought = hold.state === "consumed" && hold.booking && (kept.confirmKey ?? kept.payKey);
  if (isBought && hold.booking) return leave(next, hold.booking, false);
  if (kept.charged) return leave(next, kept.charged, false);
  const isNews = !["consumed", "released"].includes(hold.state) && state.wanted.size === 0 && !state.task;
  return isNews ? end(next, hold) : next;
}

/** The hold is over by the server's word. @param {State} state @param {Hold} hold @returns {State} */
function end(state, hold) {
  const { charged } = state.kept;
  if (hold.state === "consumed" && hold.booking) return leave(state, hold.booking, false);
  const isExpired = !["released", "revoked", "consumed"].includes(hold.state);
  // A card that was charged may still bring money: the booking's page says what became of it.
  if (charged && isExpired) return leave(state, charged, true);
  const isUnpaid = charged && charged === state.payment?.booking && hold.state === "released";
  const wanted = state.wanted.size > 0 ? state.wanted : Basket.of(hold);
  const over = isUnpaid ? "payment_failed" : isExpired ? "expired" : hold.state;
  return { ...cleared(state), refusal: null, ended: { state: over, units: wanted.requests() } };
}

/** @param {State} state @param {string} id @param {boolean} isLate @returns {State} */
function leave(state, id, isLate) {
  return { ...cleared(state), refusal: null, booked: { id, isLate } };
}

/** @param {State} state @returns {State} */
function cleared(state) {
  const nothing = { hold: null, wanted: new Basket(), kept: {}, payment: null, task: null };
  return { ...state, ...nothing, inDoubt: false, unanswered: null };
}

/** @param {State} state @param {Command} command @param {Problem} problem @returns {State} */
export function refused(state, command, problem) {
  const { kind, hold, call } = command;
  // One that was replaced ends by its time: it holds up nothing that the server would take.
  const isNeeded = problem.status >= 500 && !(hold && hold === state.replaced);
  if (call.isPatient && (isBusy(problem) || isNeeded)) return stall(state, problem);
  if (kind === "find" || kind === "list" || kind === "read") return readRefused(state, kind, problem);
  // Also if another tab changed it meanwhile: then it is that tab's, which goes on with it.
  if (hold && hold === state.replaced) return { ...state, replaced: null };
  if (RECONCILING.includes(kind)) return changeRefused(state, command, problem);
  return taskRefused({ ...state, task: null }, command, problem);
}

/** Whether the same may be taken a moment later. @param {Problem} problem */
const isBusy = ({ status }) => status === 429 || status === 503;

/** Whether another window pays for the hold, and this one has not read so yet.
 *  @param {State} state @param {Problem} problem */
const isNewsOfPayment = (state, { code }) => code === "payment_in_progress" && state.hold !== null && !state.payment;

/** @param {State} state @param {Command} command @param {Problem} problem @returns {State} */
function changeRefused(state, { asked, goal }, problem) {
  if (problem.code === "unit_unavailable") return unavailable(state, problem, asked);
  // Another tab changed it meanwhile: nothing was done, and what is wanted is compared with what it is now.
  const isOld = OVER.includes(problem.code) || problem.code === "stale_fence";
  if (isOld && state.hold) return { ...state, inDoubt: true };
  const held = heldIn(state);
  const stays = { ...state, wanted: held };
  if (isBusy(problem)) return refuse(stays, problem, asked, difference(held, state.wanted));
  // A server that made a mistake may have done it.
  if (problem.status >= 500) return refuse({ ...stays, inDoubt: true }, problem, asked);
  // The refused goal is no longer what is wanted: the next command asks for that.
  const next = goal.equals(state.wanted) ? refuse(stays, problem, asked) : state;
  return isNewsOfPayment(state, problem) ? { ...next, inDoubt: true } : next;
}

/** What the shopper has chosen meanwhile is still wanted. @param {State} state @param {Command} command
 *  @param {Problem} problem @returns {State} */
function taskRefused(state, { kind, asked }, problem) {
  const isPayment = problem.code === "payment_refused";
  // It went on meanwhile: what became of it stands in the booking.
  if (isPayment && (kind === "charge" || kind === "prove")) return state;
  if (OVER.includes(problem.code) && state.hold) return { ...state, inDoubt: true };
  const known = isPayment && kind === "checkout" ? forgetPayment(state) : state;
  const isOld = problem.code === "stale_fence" || known !== state || isNewsOfPayment(state, problem);
  return refuse(isOld ? { ...known, inDoubt: true } : known, problem, asked);
}

/** @param {State} state @param {"find"|"list"|"read"} kind @param {Problem} problem @returns {State} */
function readRefused(state, kind, problem) {
  const { hold, restoring, elsewhere } = state;
  if (kind === "read" && hold && problem.status === 404) return end(state, { ...hold, state: "released" });
  if (kind === "read") return refuse({ ...state, inDoubt: false }, problem);
  if (kind === "list" && elsewhere) return lose({ ...state, elsewhere: null }, elsewhere.problem, elsewhere.asked);
  // No shopper asked for the restoring; a server closed to shoppers simply has nothing.
  const isUnknown = kind === "find" && problem.status === 404;
  return { ...state, restoring: isUnknown && restoring ? { ...restoring, isUnknown } : null };
}

/** @param {State} state @param {Problem} problem @param {UnitRequest[]} asked @returns {State} */
function unavailable(state, problem, asked) {
  const isOwn = (problem.conflicts ?? []).some((conflict) => conflict.state === "yours");
  if (isOwn && !state.hold) return { ...state, elsewhere: { problem, asked } };
  return lose({ ...state, inDoubt: isOwn }, problem, asked);
}

/** @param {State} state @param {Problem} problem @param {UnitRequest[]} asked @returns {State} */
function lose(state, problem, asked) {
  const held = heldIn(state);
  const conflicts = problem.conflicts ?? [];
  let wanted = conflicts.length > 0 ? state.wanted : held;
  for (const { seat, area } of conflicts) {
    if (area) wanted = wanted.withArea(area, held.quantity(area));
    else if (seat) wanted = wanted.minus([{ seat }]);
  }
  return refuse({ ...state, wanted }, problem, asked);
}

/** The booking that checkout began or found. @param {State} state @param {Booking} booking @returns {State} */
function opened(state, booking) {
  const { task } = state;
  if (task?.kind !== "pay" || !task.begun) return state;
  if (booking.state === "failed") {
    // The key is that of an earlier payment, which is over.
    const again = task.isSecond ? null : { ...task, begun: null, isSecond: true };
    return { ...forgetPayment(state), task: again };
  }
  const { intent, client_secret: clientSecret } = task.begun.payment ?? {};
  const payment = { booking: task.begun.id, intent: intent ?? "", clientSecret: clientSecret ?? "" };
  const next = { ...state, task: null, inDoubt: true };
  return followBooking({ ...next, payment: { ...payment, stage: "choose", reported: "created" } }, booking);
}

/** Takes over what the booking says of its payment. @param {State} state @param {Booking} booking @returns {State} */
export function followBooking(state, booking) {
  if (state.payment?.booking !== booking.id) return state;
  switch (booking.state) {
    case "pending_payment":
      return followPayment(state, booking.payment?.state ?? "created", "read");
    case "failed":
      return { ...state, inDoubt: true };
    case "expired":
      return state.kept.charged === booking.id ? leave(state, booking.id, true) : { ...state, inDoubt: true };
    default:
      return leave(state, booking.id, false);
  }
}

/**
 * @param {State} state @param {string} reported  The state of the payment.
 * @param {"fresh"|"read"} from  What was read of the booking may be about the card before.
 * @returns {State}
 */
function followPayment(state, reported, from) {
  const { payment } = state;
  if (!payment || payment.stage === "elsewhere" || reported === "created") return state;
  const next = { ...payment, reported };
  if (reported === "declined" && reported === payment.reported && from === "read") return { ...state, payment: next };
  return { ...state, payment: { ...next, stage: STAGES[reported] ?? "charging" } };
}

/** @type {Record<string, import("./state.js").Stage>} */
const STAGES = { declined: "again", action_required: "bank", processing: "silent" };

/** @param {State} state @returns {State} */
function forgetPayment(state) {
  const { payKey, payFence, charged, ...kept } = state.kept;
  return { ...state, payment: null, kept };
}
