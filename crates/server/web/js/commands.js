// The next call to the server that a state asks for: one at a time, and the same for the same state.
// Pure: the key of a command that has none yet is an argument.

import { Basket, difference, heldIn } from "./basket.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Command} Command */
/** @typedef {import("./wire.js").Hold} Hold */

/**
 * What is sent now; `null` while an answer is awaited, and when nothing is to be done.
 * @param {State} state @param {string} key  An Idempotency-Key that was never used.
 * @returns {Command|null}
 */
export function nextCommand(state, key) {
  const { hold, replaced, restoring } = state;
  if (state.pending || state.booked || state.isStalled) return null;
  if (restoring) return restoring.isUnknown ? list(state) : find(state);
  if (state.elsewhere) return list(state);
  if (state.inDoubt && hold) return read(state, hold);
  if (replaced) return release(state, replaced);
  return reconcile(state, key) ?? taskCommand(state, key);
}

/** Whether nothing is left to be sent or answered. @param {State} state */
export const isSettled = (state) => !state.pending && nextCommand(state, "") === null;

/**
 * @template {import("./wire.js").Route} R
 * @param {R} route @param {import("./wire.js").CallOf<R>} [rest] @returns {import("./wire.js").Call}
 */
const call = (route, rest) => /** @type {any} */ ({ route, ...rest });

/**
 * @param {State} state @param {Command["kind"]} kind @param {import("./wire.js").Call} sent
 * @param {Partial<Command>} [more] @returns {Command}
 */
const command = (state, kind, sent, more) => ({
  kind,
  call: sent,
  hold: state.hold,
  asked: [],
  goal: state.wanted,
  ...more,
});

/** @param {State} state */
const list = (state) => command(state, "list", call("GET /v1/holds", { isPatient: true }));

/** @param {State} state */
function find(state) {
  const { id, secret } = state.restoring?.stored ?? { id: "" };
  return command(state, "find", call("GET /v1/holds/{hold}", { id, secret, isPatient: true }));
}

/** @param {State} state @param {Hold} hold */
function read(state, { id, secret }) {
  return command(state, "read", call("GET /v1/holds/{hold}", { id, secret, isPatient: true }));
}

/** By its fence, as every change: what another tab added meanwhile is not given back unseen.
 *  @param {State} state @param {Hold} hold */
function release(state, hold) {
  const { id, secret, fence } = hold;
  // One that was replaced is shown nowhere: no shopper would give it back.
  const isPatient = hold === state.replaced;
  return command(state, "release", call("DELETE /v1/holds/{hold}", { id, secret, fence, isPatient }), { hold });
}

/** Turns what is held into what is wanted. @param {State} state @param {string} key */
function reconcile(state, key) {
  const { hold, wanted } = state;
  const { add, drop } = difference(heldIn(state), wanted);
  if (add.length === 0 && drop.length === 0) return null;
  if (!hold) {
    return command(state, "hold", request(state, { units: add }, key), { asked: add });
  }
  if (wanted.size === 0) return release(state, hold);
  const body = { fence: hold.fence, ...(add.length ? { add } : {}), ...(drop.length ? { drop } : {}) };
  // A change has no key: whether it happened is read from the hold itself.
  const change = { id: hold.id, body, secret: hold.secret, isOnce: true };
  return command(state, "change", call("PATCH /v1/holds/{hold}", change), { asked: add });
}

/** @param {State} state @param {string} key @returns {Command|null} */
function taskCommand(state, key) {
  const { hold, task, payment, kept } = state;
  if (!task) return null;
  if (task.kind === "best") return best(state, task, key);
  if (task.kind === "charge" || task.kind === "prove") return payment && atBank(state, task, payment);
  if (!hold) return null;
  const { id, secret, fence } = hold;
  switch (task.kind) {
    case "extend":
      return command(state, "extend", call("POST /v1/holds/{hold}/extend", { id, secret, body: {} }));
    case "abandon":
      // The booking: if this comes late, the next payment goes on.
      return command(state, "abandon", call("POST /v1/holds/{hold}/abandon", {
        id, secret, body: hold.booking ? { booking: hold.booking } : {},
      }));
    case "confirm": {
      // The fence: what another tab added meanwhile is not bought unseen.
      const same = kept.confirmFence === fence ? kept.confirmKey : undefined;
      const bought = { id, secret, body: { fence }, key: same ?? key };
      return command(state, "confirm", call("POST /v1/holds/{hold}/confirm", bought));
    }
    case "pay": {
      const { begun } = task;
      if (begun) return command(state, "booking", call("GET /v1/bookings/{booking}", { id: begun.id, secret }));
      const same = kept.payFence === fence ? kept.payKey : undefined;
      const opened = { id, secret, body: { fence }, key: same ?? key };
      return command(state, "checkout", call("POST /v1/holds/{hold}/checkout", opened));
    }
  }
}

/** The best N together; they take the place of what is held, once they are ours.
 *  @param {State} state @param {{quantity: number, category: string|null}} task @param {string} key */
function best(state, { quantity, category }, key) {
  /** @type {import("./wire.js").BestRequest} */
  const asked = { quantity, ...(category ? { category } : {}), together: "preferred" };
  return command(state, "best", request(state, { best: asked }, key), { asked: state.wanted.requests() });
}

/** The same request for a hold has the same key, for a hold that was made unseen.
 *  @param {State} state @param {import("./wire.js").Body<"POST /v1/events/{event}/holds">} body @param {string} key */
function request({ event, requested }, body, key) {
  const same = JSON.stringify(requested?.body) === JSON.stringify(body) ? requested?.key : undefined;
  return call("POST /v1/events/{event}/holds", { id: event.id, body, key: same ?? key, isAgain: same !== undefined });
}

/** A test card, or what the buyer says to the bank. @param {State} state
 *  @param {Extract<import("./state.js").Task, {kind: "charge"|"prove"}>} task @param {import("./state.js").Payment} payment */
function atBank(state, task, { intent: id, clientSecret: client_secret }) {
  if (task.kind === "charge") {
    const body = { client_secret, card: task.card };
    return command(state, "charge", call("POST /demo/payments/{intent}", { id, body }));
  }
  const body = { client_secret, ok: task.ok };
  return command(state, "prove", call("POST /demo/payments/{intent}/answer", { id, body }));
}

/** The seats that an answer, or a refusal, says something of: for the map.
 *  @param {State} before @param {State} after @param {import("./state.js").Action} action
 *  @returns {{seats: Iterable<string>, state: import("./wire.js").UnitState, seq: number|undefined}[]} */
export function seatChanges(before, after, action) {
  if (action.type === "refused") {
    const { conflicts = [], seq } = action.problem;
    return conflicts.flatMap(({ seat, state }) => {
      if (!seat) return [];
      return [{ seats: [seat], state: state === "sold" || state === "blocked" ? state : "held", seq }];
    });
  }
  if (action.type !== "answered") return [];
  const { kind, command } = action;
  if (kind === "release") {
    return [{ seats: Basket.of(command.hold).seats, state: "free", seq: action.answer?.seq }];
  }
  if (kind === "confirm") return [{ seats: heldIn(before).seats, state: "sold", seq: action.answer.seq }];
  const { hold } = after;
  if (!hold || hold === before.hold) return [];
  const now = heldIn(after).seats;
  const isSame = hold.id === before.hold?.id;
  const lost = isSame ? [...heldIn(before).seats].filter((seat) => !now.has(seat)) : [];
  return [
    { seats: now, state: "held", seq: hold.seq },
    { seats: lost, state: "free", seq: hold.seq },
  ];
}
