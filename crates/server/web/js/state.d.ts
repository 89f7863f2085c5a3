// The shopper's hold, its payment, and what is still to be done, as data. Types only.
// `reducer.js` makes one state out of another, `commands.js` says what a state sends.

import type { Basket } from "./basket.js";
import type { StoredHold } from "./holdstore.js";
import type { Booking, Call, Hold, Payments, Problem, SaleEvent, UnitRequest } from "./wire.js";

export interface State {
  /** The terms of the event, and how its bookings are paid. */
  readonly event: SaleEvent;
  readonly payments: Payments;
  /** The last request for a hold until one answers it: refused at last, an earlier sending of it may have made one. */
  readonly requested: Call | null;
  /** What is held, as the server last reported. */
  readonly hold: Hold | null;
  /** What the shopper wants to hold. */
  readonly wanted: Basket;
  /** The hold that a better one has replaced; it is still to be released. */
  readonly replaced: Hold | null;
  /** What the server chose last. */
  readonly chosen: { readonly units: Basket; readonly together: boolean } | null;
  /** An earlier visit's hold is being looked for. */
  readonly restoring: { readonly stored: StoredHold | null; readonly isUnknown: boolean } | null;
  /** What the shopper pressed last and is not done. */
  readonly task: Task | null;
  /** The hold must be read before anything else is sent. */
  readonly inDoubt: boolean;
  /** What a change without an answer was to make of the hold, until that is read. */
  readonly unanswered: Basket | null;
  /** What one has could not be read, or not be given back: nothing is sent until the shopper acts. */
  readonly isStalled: boolean;
  /** Units were refused because another hold of this shopper has them: that hold is looked for. */
  readonly elsewhere: Lost | null;
  /** The command whose answer is awaited. */
  readonly pending: Command | null;
  /** Commands sent since the shopper last changed what is wanted. */
  readonly rounds: number;
  readonly trouble: Trouble;
  readonly refusal: Refusal | null;
  readonly ended: { readonly state: string; readonly units: UnitRequest[] } | null;
  readonly payment: Payment | null;
  /** What a reload must not lose. */
  readonly kept: Kept;
  /** The booking whose page comes next; `isLate` if its hold had ended before its money came. */
  readonly booked: { readonly id: string; readonly isLate: boolean } | null;
}

/** The keys of commands whose answer is not known, with the fence that each was made for. */
export interface Kept {
  readonly confirmKey?: string;
  readonly confirmFence?: number;
  readonly payKey?: string;
  readonly payFence?: number;
  /** The booking that a card was charged for. */
  readonly charged?: string;
}

/** `agreed` is what the shopper saw: nothing else is bought. `begun` is the answer to checkout. */
export type Task =
  | { kind: "best"; quantity: number; category: string | null }
  | { kind: "extend" | "abandon" }
  | { kind: "confirm"; agreed: Basket }
  | { kind: "pay"; agreed: Basket; begun: Booking | null; isSecond: boolean }
  | { kind: "charge"; card: string }
  | { kind: "prove"; ok: boolean };

/** Choose a card; another one after a decline; no word yet; the bank asks the buyer; the bank is silent;
 *  another window pays. */
export type Stage = "choose" | "again" | "charging" | "bank" | "silent" | "elsewhere";

/** `reported` is the last state of the payment that the provider gave. */
export interface Payment {
  readonly booking: string;
  readonly intent: string;
  readonly clientSecret: string;
  readonly stage: Stage;
  readonly reported: string;
}

export type Trouble = { kind: "none" | "unsent" } | { kind: "waiting"; until: number };

/** Units that a command asked for and did not get. */
export interface Lost {
  readonly problem: Problem;
  readonly asked: UnitRequest[];
}

/** `again` is how what is wanted changes on "try again", if at all: not all that was wanted, or places would be
 *  counted twice and changes of another tab undone. */
export interface Refusal extends Lost {
  readonly again: { readonly drop: UnitRequest[]; readonly add: UnitRequest[] } | null;
}

/** One call to the server. `goal` is what was wanted when it was sent. */
export interface Command<K extends keyof Answers = keyof Answers> {
  readonly kind: K;
  readonly call: Call;
  readonly hold: Hold | null;
  readonly asked: UnitRequest[];
  readonly goal: Basket;
}

export interface Answers {
  find: Hold;
  list: Hold[];
  read: Hold;
  hold: Hold;
  change: Hold;
  release: Hold;
  best: Hold;
  extend: Hold;
  confirm: Booking;
  checkout: Booking;
  booking: Booking;
  abandon: Hold;
  charge: { taken: boolean };
  prove: unknown;
}

type Answered = {
  [K in keyof Answers]: { type: "answered"; kind: K; command: Command; answer: Answers[K] };
}[keyof Answers];

export type Press =
  | { kind: "best"; quantity: number; category: string | null }
  | { kind: "extend" | "abandon" | "confirm" | "pay" }
  | { kind: "charge"; card: string }
  | { kind: "prove"; ok: boolean };

export type Action =
  | Answered
  | { type: "terms"; event: SaleEvent }
  | { type: "toggle"; seat: string }
  | { type: "area"; area: string; quantity: number }
  | { type: "swap"; drop: UnitRequest[]; add: UnitRequest[] }
  | { type: "again" }
  | { type: "press"; press: Press }
  | { type: "dismiss"; what: "refusal" | "ended" }
  | { type: "recheck" }
  | { type: "sent"; command: Command }
  | { type: "refused"; command: Command; problem: Problem }
  | { type: "unanswered"; command: Command }
  | { type: "broke" }
  | { type: "trouble"; trouble: Trouble }
  | { type: "looked"; booking: Booking };
