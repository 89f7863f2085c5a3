// Puts the server's refusals into words a shopper can act on. Every code of the API has its
// sentence here, which a test compares with the API description; a code that is newer than the page
// speaks through the problem's own title and detail.

import { dateAndTime, plural, roughly, sentenceList } from "./format.js";

/** @typedef {import("./wire.js").Problem} Problem */
/** @typedef {import("./wire.js").Conflict} Conflict */
/** @typedef {{title: string, text: string, lost: string[]}} Words */

// What the page itself asked wrongly: it is older or newer than the server.
const OUT_OF_STEP = {
  title: "This page and the server do not understand each other",
  text: "Please reload the page. What you hold is kept.",
};

/** @type {Record<string, {title: string, text: string}>} */
const SAID = {
  too_many_units: {
    title: "That is too many at once",
    text: "Take one away to choose another.",
  },
  budget_exceeded: {
    title: "You have reached the limit for this event",
    text: "Confirm or release what you hold before choosing more.",
  },
  adjacency_refused: {
    title: "That would leave a single seat alone",
    text: "Please choose seats side by side, without leaving a single one between.",
  },
  cap_reached: {
    title: "No more time can be added",
    text: "This hold is at its limit. Confirm before the time runs out.",
  },
  stale_fence: {
    title: "Your choice has changed",
    text: "In another window, it seems. Look it over, then confirm.",
  },
  unknown_unit: { title: "This unit is not part of the event", text: "Please reload the page." },
  event_not_found: { title: "There is no such event", text: "The address may be incomplete." },
  hold_not_found: { title: "This hold no longer exists", text: "Choose again." },
  booking_not_found: {
    title: "There is no such booking",
    text: "It belongs to somebody else, or the link is incomplete.",
  },
  unauthenticated: {
    title: "Choosing is not open here",
    text: "This server takes holds from its own shops only.",
  },
  forbidden: {
    title: "This cannot be done here",
    text: "Payment is needed to confirm; your hold is kept meanwhile.",
  },
  rate_limited: {
    title: "A little too much at once",
    text: "From your network come more requests than it may send, or more is held than it may hold. Nothing was lost: buy or release what you hold, or try again in a moment.",
  },
  overloaded: {
    title: "Very busy right now",
    text: "The server could not take this just now. Nothing was lost; try again in a moment.",
  },
  read_only: {
    title: "Sales are paused for a moment",
    text: "The server takes no changes at present. What you hold is kept.",
  },
  outcome_unknown: {
    title: "The server did not say what became of it",
    text: "It may have been done. Try again: it is done once at most.",
  },
  memory_mismatch: {
    title: "The server starts again",
    text: "Nothing was done, and what you hold is kept. Try again in a moment.",
  },
  shutting_down: {
    title: "The server is stopping",
    text: "Nothing was lost; try again in a moment.",
  },
  payment_in_progress: {
    title: "Payment has begun",
    text: "Go back from the payment to change your seats.",
  },
  payment_unavailable: {
    title: "The payment cannot begin just now",
    text: "Nothing was charged, and your seats are kept. Try again in a moment.",
  },
  payment_refused: {
    title: "The payment was not taken",
    text: "Nothing was charged. Please begin it again.",
  },
  booking_not_confirmed: { title: "There is nothing to cancel here", text: "It was not bought, or not yet." },
  nothing_paid: {
    title: "Nothing was paid here",
    text: "Please ask the organiser about the money.",
  },
  last_admin_key: { title: "The last admin key stays", text: "Make another one first." },
  lease_held: { title: "Another holds this lease", text: "Wait for its end." },
  lease_lost: { title: "The lease is lost", text: "Stop, and acquire it anew." },
  leases_unavailable: { title: "Leases cannot be reached", text: "Nothing was done. Try again." },
  already_cancelled: {
    title: "That is cancelled already",
    text: "In another window, or by the organiser.",
  },
  cancel_closed: {
    title: "It is too late to cancel here",
    text: "Please ask the organiser.",
  },
  hold_expired: { title: "Your time ran out", text: "The hold has ended. Choose again." },
  hold_released: { title: "Your hold was released", text: "It was given back. Choose again." },
  hold_revoked: {
    title: "Your hold was taken back",
    text: "The organiser ended it. Nothing was charged.",
  },
  hold_consumed: { title: "This is booked already", text: "Find it under “My bookings”." },
  event_dropped: { title: "This event is gone", text: "It was over some time ago." },
  event_not_over: { title: "The event is not over yet", text: "Try again when it is." },
  event_in_use: { title: "Something of the event is not done yet", text: "Try again later." },
  event_exists: { title: "There is such an event already", text: "Take another id." },
  payment_required: {
    title: "There is something left to pay",
    text: "Begin the payment; your hold is kept meanwhile.",
  },
  payment_mismatch: {
    title: "This payment belongs to another booking",
    text: "Nothing was charged for this one. Please begin the payment again.",
  },
  not_found: { title: "There is nothing here", text: "The address may be incomplete." },
  invalid_request: OUT_OF_STEP,
  idempotency_key_missing: OUT_OF_STEP,
  idempotency_key_reused: OUT_OF_STEP,
  method_not_allowed: OUT_OF_STEP,
  body_too_large: OUT_OF_STEP,
  unsupported_media_type: OUT_OF_STEP,
  request_timeout: {
    title: "The connection is very slow",
    text: "The request did not arrive in time, and nothing was done. Please try again.",
  },
  internal_error: {
    title: "The server made a mistake",
    text: "What you hold is kept. Try again in a moment.",
  },
};

/** Whether a code has a sentence of its own. @param {string} code */
export function isKnown(code) {
  return code === "unit_unavailable" || code === "not_on_sale" || code in SAID;
}

/**
 * @param {Problem} problem
 * @param {(unit: {seat?: string, area?: string}) => string} nameOf
 * @returns {Words}
 */
export function words(problem, nameOf) {
  if (problem.code === "unit_unavailable") return unavailable(problem, nameOf);
  if (problem.code === "not_on_sale") return notOnSale(problem);
  const said = SAID[problem.code];
  if (said) return { title: said.title, text: limitText(problem) ?? said.text, lost: [] };
  return { title: problem.title ?? "The server refused this", text: problem.detail ?? "", lost: [] };
}

/** @param {Problem} problem @param {(unit: {seat?: string, area?: string}) => string} nameOf */
function unavailable(problem, nameOf) {
  const conflicts = (problem.conflicts ?? []).filter((conflict) => conflict.state !== "yours");
  const lost = conflicts.map((conflict) => lostLine(conflict, nameOf));
  if (lost.length === 0) {
    const own = (problem.conflicts ?? []).map(nameOf);
    const title = own.length > 0 ? `You hold ${sentenceList(own)} already` : "Not enough are free";
    const text =
      own.length > 0 ? "In another hold of yours." : "There are not that many free as asked.";
    return { title, text, lost };
  }
  const names = conflicts.map(nameOf);
  const title =
    names.length <= 2
      ? `${sentenceList(names)} ${names.length === 1 ? "is" : "are"} gone`
      : `${plural(names.length, "seat")} are gone`;
  const full = conflicts.length === 1 && conflicts[0].state === "full";
  return {
    title: full ? `Not enough left in ${names[0]}` : title,
    text: lost.length === 1 ? lostLine(conflicts[0], () => "It") : "",
    lost: lost.length > 1 ? lost : [],
  };
}

/** @param {Conflict} conflict @param {(unit: {seat?: string, area?: string}) => string} nameOf */
function lostLine(conflict, nameOf) {
  const name = nameOf(conflict);
  switch (conflict.state) {
    case "full":
      return conflict.free
        ? `Only ${plural(conflict.free, "place")} left there.`
        : `${name} is full.`;
    case "sold":
      return `${name} was just sold to somebody else.`;
    case "blocked":
      return `${name} is not for sale.`;
    default: {
      const wait = conflict.retry_after_ms;
      const until = wait ? ` It may come back within ${roughly(wait)}.` : "";
      return `${name} was just taken by somebody else.${until}`;
    }
  }
}

/** How many there may be, and are, where that was counted. @param {Problem} problem */
function limitText({ code, budget, limit, used = 0 }) {
  if (limit === undefined) return null;
  if (code === "too_many_units") return `At most ${limit} at a time here. Take one away to choose another.`;
  if (code !== "budget_exceeded") return null;
  return budget === "bought"
    ? `At most ${limit} for each buyer, and you have ${used} with what you hold now.`
    : `At most ${limit} held at a time, and you hold ${used}. Buy or release some before choosing more.`;
}

/** @param {Problem} problem */
function notOnSale(problem) {
  const opens = dateAndTime(problem.sale_opens_at);
  const text = opens ? `The sale opens on ${opens}.` : "Nothing is sold here any more.";
  return { title: "Not on sale", text, lost: [] };
}

/**
 * "Row B seat 3 and Row B seat 4"
 * @param {import("./wire.js").Alternative} alternative
 * @param {(unit: {seat?: string, area?: string}) => string} nameOf
 */
export function alternativeName(alternative, nameOf) {
  const names = alternative.units.map(nameOf);
  return names.length > 3 ? `${names[0]} and ${names.length - 1} more` : sentenceList(names);
}

/** @type {Record<string, {title: string, text: string}>} */
const ENDINGS = {
  expired: {
    title: "Your time ran out",
    text: "The hold has ended and its units are on sale again.",
  },
  revoked: SAID.hold_revoked,
  payment_failed: {
    title: "The payment did not go through",
    text: "Nothing was charged. Here the seats are free again at once.",
  },
  released: {
    title: "Your hold was released",
    text: "It was given back, perhaps in another window.",
  },
};

const ENDED = { title: "Your hold has ended", text: "Its units are on sale again." };

/** @param {string} state @param {boolean} isOnSale  Whether the event sells anything now. */
export function endingWords(state, isOnSale) {
  const said = ENDINGS[state] ?? ENDED;
  return isOnSale || state === "revoked" ? said : { ...said, text: "Nothing is sold here any more." };
}
