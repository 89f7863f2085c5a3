// Speaks HTTP to the server. Every call ends in one of three ways: the answer, a `Refused` (the
// server decided against it), or an `Unreachable` (it is not known whether the server decided at
// all). Callers must not treat the third as the second: the change may have happened.

import { clock } from "./clock.js";

/** @typedef {import("./wire.js").Problem} Problem */

const REPLY_WAIT_MS = 12_000;
const SESSION_MARK = "soldonce.session";

/** The server's refusal, with its problem document. */
export class Refused extends Error {
  /** @param {Problem} problem @param {number} retryAfterMs */
  constructor(problem, retryAfterMs) {
    super(problem.detail || problem.title || problem.code);
    this.problem = problem;
    this.code = problem.code;
    this.retryAfterMs = retryAfterMs;
  }
}

/** No reply: the network failed, or the server fell silent. The outcome is unknown. */
export class Unreachable extends Error {}

/** @type {Promise<void>|null} */
let openingSession = null;

/** Opens a shopper session; concurrent callers share one request. The cookie is httpOnly. */
function openSession() {
  openingSession ??= request("POST", "/v1/sessions", { body: {} })
    .then(() => localStorage.setItem(SESSION_MARK, "open"))
    .finally(() => {
      openingSession = null;
    });
  return openingSession;
}

/** Whether this browser ever had a session: without one there is nothing of ours to ask for. */
export function hadSession() {
  return localStorage.getItem(SESSION_MARK) !== null;
}

/**
 * A call on behalf of the shopper: makes sure there is a session, and opens a new one once if the
 * server no longer knows the old one.
 * @param {string} method @param {string} path @param {CallOptions} [options]
 */
export async function asShopper(method, path, options) {
  if (!hadSession()) await openSession();
  try {
    return await request(method, path, options);
  } catch (error) {
    if (!(error instanceof Refused) || error.problem.status !== 401) throw error;
    await openSession();
    return request(method, path, options);
  }
}

/** A read that is open to anyone, or to shoppers only: which, the server says. */
export async function asAnyone(/** @type {string} */ method, /** @type {string} */ path) {
  try {
    return await request(method, path);
  } catch (error) {
    if (error instanceof Refused && error.problem.status === 401) return asShopper(method, path);
    throw error;
  }
}

/**
 * @typedef {object} CallOptions
 * @property {unknown} [body]
 * @property {string} [secret]  Hold-Secret: proves ownership of the hold.
 * @property {string} [key]  Idempotency-Key.
 *
 * @param {string} method @param {string} path @param {CallOptions} [options]
 * @returns {Promise<any>}
 */
export async function request(method, path, { body, secret, key } = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (secret) headers["Hold-Secret"] = secret;
  if (key) headers["Idempotency-Key"] = key;
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), REPLY_WAIT_MS);
  const sentAt = performance.now();
  try {
    const reply = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: abort.signal,
    });
    const answer = await readJson(reply);
    if (!reply.ok) throw refusal(reply, answer);
    if (answer?.server_time) clock.learn(answer.server_time, sentAt, performance.now());
    return answer;
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Unreachable(String(error));
  } finally {
    clearTimeout(timer);
  }
}

/** @param {Response} reply */
async function readJson(reply) {
  const text = await reply.text();
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch (error) {
    // A proxy's HTML error page is still an answer with a status; a broken success is not.
    if (reply.ok) throw error;
    return null;
  }
}

/** @param {Response} reply @param {any} answer */
function refusal(reply, answer) {
  // Gateways speak for a server they could not reach: nobody knows what became of the request.
  if (!answer?.code && [502, 504].includes(reply.status)) return new Unreachable(reply.statusText);
  const problem = { code: "unexpected", title: reply.statusText, ...answer, status: reply.status };
  return new Refused(problem, retryAfterMs(reply));
}

/** Retry-After is seconds or a date; a date is read against the server's own `Date`. */
function retryAfterMs(/** @type {Response} */ reply) {
  const value = reply.headers.get("Retry-After");
  if (!value) return 0;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const until = Date.parse(value) - Date.parse(reply.headers.get("Date") ?? "");
  return Number.isFinite(until) ? Math.max(0, until) : 1000;
}

/** @param {string} id */
const at = (id) => encodeURIComponent(id);

export const paths = {
  events: "/v1/events",
  event: (/** @type {string} */ id) => `/v1/events/${at(id)}`,
  chart: (/** @type {string} */ id) => `/v1/events/${at(id)}/chart`,
  seats: (/** @type {string} */ id) => `/v1/events/${at(id)}/seats`,
  feed: (/** @type {string} */ id, /** @type {number} */ after) =>
    `/v1/events/${at(id)}/feed?after=${after}`,
  newHold: (/** @type {string} */ id) => `/v1/events/${at(id)}/holds`,
  holds: "/v1/holds",
  hold: (/** @type {string} */ id) => `/v1/holds/${at(id)}`,
  extend: (/** @type {string} */ id) => `/v1/holds/${at(id)}/extend`,
  confirm: (/** @type {string} */ id) => `/v1/holds/${at(id)}/confirm`,
  checkout: (/** @type {string} */ id) => `/v1/holds/${at(id)}/checkout`,
  abandon: (/** @type {string} */ id) => `/v1/holds/${at(id)}/abandon`,
  bookings: "/v1/bookings",
  booking: (/** @type {string} */ id) => `/v1/bookings/${at(id)}`,
  cancel: (/** @type {string} */ id) => `/v1/bookings/${at(id)}/cancel`,
  payments: "/v1/payments",
  demoCharge: (/** @type {string} */ intent) => `/demo/payments/${at(intent)}`,
  demoAnswer: (/** @type {string} */ intent) => `/demo/payments/${at(intent)}/answer`,
};

/** Pages through a list route: `{<field>: [..], next}`. Bounded, so a wrong cursor cannot loop. */
export async function listAll(
  /** @type {(method: string, path: string) => Promise<any>} */ call,
  /** @type {string} */ path,
  /** @type {string} */ field,
) {
  /** @type {any[]} */
  const found = [];
  let cursor = "";
  for (let page = 0; page < 20; page += 1) {
    const query = cursor ? `?after=${encodeURIComponent(cursor)}` : "";
    const answer = await call("GET", path + query);
    found.push(...(answer?.[field] ?? []));
    cursor = answer?.next ?? "";
    if (!cursor) break;
  }
  return found;
}
