// A shopper without a page: the state, the commands that it sends to a server, and what a reload keeps.

import { nextCommand } from "../../web/js/commands.js";
import { initial, reduce } from "../../web/js/reducer.js";
import { EVENT, FREE_OF_CHARGE, namesOf } from "./server.mjs";

/** @typedef {import("../../web/js/state.d.ts").State} State */
/** @typedef {import("../../web/js/state.d.ts").Action} Action */
/** @typedef {import("../../web/js/state.d.ts").Command} Command */

// More commands than any test sends: one that never comes to rest fails.
const COMMANDS_MAX = 40;

export class Shopper {
  /** @param {{perform: (command: Command) => {answer: any}|{problem: any}}} server @param {any} [payments] */
  constructor(server, payments = FREE_OF_CHARGE) {
    this.server = server;
    this.payments = payments;
    this.keys = 0;
    /** @type {Command[]} */ this.sent = [];
    /** @type {any} */ this.stored = null;
    /** @type {State} */ this.state = initial(EVENT, payments, null);
  }

  /** @param {Action} action */
  dispatch(action) {
    const before = this.state;
    this.state = reduce(before, action);
    const { hold, kept } = this.state;
    const isKept = hold !== before.hold || kept !== before.kept;
    if (isKept) this.stored = hold && { id: hold.id, secret: hold.secret, ...kept };
    this.send();
  }

  send() {
    this.keys += 1;
    const command = nextCommand(this.state, `key-${this.keys}`);
    if (!command) return;
    this.sent.push(command);
    this.dispatch({ type: "sent", command });
  }

  /** @param {...string} seats */
  toggle(...seats) {
    for (const seat of seats) this.dispatch({ type: "toggle", seat });
  }

  /** @param {import("../../web/js/state.d.ts").Press} press */
  press(press) {
    this.dispatch({ type: "press", press });
  }

  /** The server's answer arrives. */
  hear() {
    if (!this.state.pending) this.send();
    const command = this.state.pending;
    if (command) this.take(command, this.server.perform(command));
  }

  /** @param {Command} command @param {{answer: any}|{problem: any}} outcome */
  take(command, outcome) {
    if ("problem" in outcome) this.dispatch({ type: "refused", command, problem: outcome.problem });
    else this.dispatch({ type: "answered", kind: command.kind, command, answer: outcome.answer });
  }

  /** No answer arrives: what must not be repeated is in doubt, all else is sent again as it is. */
  lose() {
    const command = this.state.pending;
    if (command?.call.isOnce) this.dispatch({ type: "unanswered", command });
  }

  /** Hears answers until nothing is left to do. */
  settle() {
    this.send();
    for (let k = 0; this.state.pending; k += 1) {
      if (k > COMMANDS_MAX) throw new Error(`no rest: ${this.sent.slice(-6).map(({ kind }) => kind)}`);
      this.hear();
    }
  }

  /** The tab is loaded anew; commands on their way get no answer here. Something may be chosen before it has
   *  sent anything. */
  reload() {
    const { stored } = this;
    this.state = initial(EVENT, this.payments, { stored, isUnknown: !stored });
  }

  /** The server cannot take the command now. @param {string} [code] */
  refuse(code = "overloaded") {
    const command = this.state.pending;
    const status = code === "internal_error" ? 500 : 503;
    if (command) this.take(command, { problem: { status, code } });
  }

  /** "Try again" is pressed. */
  again() {
    this.dispatch({ type: "again" });
  }

  /** So many places of the floor. @param {number} quantity */
  floor(quantity) {
    this.dispatch({ type: "area", area: "floor", quantity });
  }

  get held() {
    return namesOf(this.state.hold?.units ?? []);
  }

  get wanted() {
    const { wanted } = this.state;
    const places = Array.from({ length: wanted.quantity("floor") }, () => ({ area: "floor" }));
    return namesOf([...[...wanted.seats].map((seat) => ({ seat })), ...places]);
  }
}
