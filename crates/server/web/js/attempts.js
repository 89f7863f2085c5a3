// Gets a command through: repeats it while no answer comes, and once more after the server asked to
// wait; what must get through, for a minute of such pauses. Repeatable are reads, commands with an
// Idempotency-Key, and those whose repetition has the same answer (extend, release).

import { Refused, Unreachable } from "./api.js";

const RETRY_MS = [600, 1200, 2500, 5000, 10_000];
// A longer pause is told at once: the shopper may do something else meanwhile.
const WAIT_MS_MAX = 15_000;
// All pauses of what must get through.
const PATIENCE_MS = 60_000;

/** The page has moved on: the answer is of no use any more. */
export class Abandoned extends Error {}

/**
 * @typedef {object} AttemptWatch
 * @property {() => boolean} abandoned
 * @property {() => void} reached
 * @property {() => void} unreachable
 * @property {(ms: number) => void} waiting  The server asked to wait.
 */

/**
 * @template T
 * @param {() => Promise<T>} call @param {AttemptWatch} watch
 * @param {"repeatable"|"patient"|"unsafe-to-repeat"} [kind]  What must not be repeated blindly fails
 *   with `Unreachable`: the caller looks what became of it.
 * @returns {Promise<T>}
 */
export async function insist(call, watch, kind = "repeatable") {
  let unanswered = 0;
  let waited = 0;
  for (;;) {
    if (watch.abandoned()) throw new Abandoned();
    try {
      const answer = await call();
      watch.reached();
      return answer;
    } catch (error) {
      if (error instanceof Unreachable) {
        watch.unreachable();
        if (kind === "unsafe-to-repeat") throw error;
        await pause(RETRY_MS[Math.min(unanswered, RETRY_MS.length - 1)]);
        unanswered += 1;
        continue;
      }
      watch.reached();
      if (!(error instanceof Refused)) throw error;
      const ms = error.retryAfterMs || 1000;
      if (error.code === "outcome_unknown" && kind === "unsafe-to-repeat") {
        await pause(Math.min(ms, WAIT_MS_MAX));
        throw new Unreachable(error.message);
      }
      const isSpent = kind === "patient" ? waited + ms > PATIENCE_MS : waited > 0;
      if (!asksToWait(error) || ms > WAIT_MS_MAX || isSpent) throw error;
      waited += ms;
      watch.waiting(ms);
      await pause(ms);
      watch.reached();
    }
  }
}

/** @param {Refused} error */
function asksToWait(error) {
  return error.problem.status === 429 || error.problem.status === 503;
}

/** Waits, or returns as soon as the browser says that the network is back. @param {number} ms */
function pause(ms) {
  return new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
  });
}
