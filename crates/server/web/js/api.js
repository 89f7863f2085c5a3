// Speaks HTTP to the server. Every call ends in one of three ways: the answer, a `Refused` (the
// server decided against it), or an `Unreachable` (it is not known whether the server decided at
// all). Callers must not treat the third as the second: the change may have happened.

import { clock } from "./clock.js";
import { lasting, remembers } from "./storage.js";

/** @typedef {import("./wire.js").Problem} Problem */

// Without a byte for this long a call is given up; a large answer may take longer as a whole.
const SILENCE_MS = 12_000;
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

/** @type {Promise<string>|null} */
let openingSession = null;
/** The session's token, where the browser takes no cookie. @type {string|null} */
let bearer = null;

/** Opens a shopper session and returns its token; concurrent callers share one request. The cookie
 *  is httpOnly. */
function openSession() {
  openingSession ??= request("POST", "/v1/sessions", { body: {} })
    .then(({ session }) => {
      lasting.set(SESSION_MARK, "open");
      if (!remembers()) bearer = session;
      return session;
    })
    .finally(() => {
      openingSession = null;
    });
  return openingSession;
}

/** Whether this browser ever had a session: without one there is nothing of ours to ask for. */
export function hadSession() {
  return lasting.get(SESSION_MARK) !== null;
}

/** A random value that comes once: an Idempotency-Key. Not `randomUUID`, which browsers keep from
 *  pages that came without TLS. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
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
    if (!isUnauthenticated(error)) throw error;
  }
  const token = await openSession();
  try {
    return await request(method, path, options);
  } catch (error) {
    if (!isUnauthenticated(error) || bearer) throw error;
  }
  // The cookie of a new session did not come back: this browser keeps none.
  bearer = token;
  return request(method, path, options);
}

/** @param {unknown} error */
function isUnauthenticated(error) {
  return error instanceof Refused && error.problem.status === 401;
}

/**
 * A read that is open to anyone, or to shoppers only: which, the server says.
 * @param {string} method @param {string} path @param {CallOptions} [options]
 */
export async function asAnyone(method, path, options) {
  try {
    return await request(method, path, options);
  } catch (error) {
    if (isUnauthenticated(error)) return asShopper(method, path, options);
    throw error;
  }
}

/**
 * @typedef {object} CallOptions
 * @property {unknown} [body]
 * @property {string} [secret]  Hold-Secret: proves ownership of the hold.
 * @property {string} [key]  Idempotency-Key.
 * @property {{etag: string}} [version]  What the caller has; takes the newer one. An answer that has
 *   not changed is `null`.
 * @property {boolean} [lasting]  It never changes, so the browser may keep it.
 *
 * @param {string} method @param {string} path @param {CallOptions} [options]
 * @returns {Promise<any>}
 */
export async function request(method, path, options = {}) {
  const { body, version } = options;
  const id = newKey();
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(), SILENCE_MS);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(), SILENCE_MS);
  };
  const sentAt = performance.now();
  try {
    const reply = await fetch(path, {
      method,
      headers: headersOf(id, options),
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: abort.signal,
      // The browser would hand an unchanged answer out as if it had just been written.
      cache: options.lasting ? "default" : "no-store",
    });
    if (reply.status === 304) return null;
    // Charts and snapshots may take long to arrive; all else comes in one piece.
    const isLarge = Boolean(options.lasting || version);
    const answer = parsed(reply, isLarge ? await inParts(reply, heard) : await reply.text());
    if (!reply.ok) throw refusal(reply, answer);
    if (version) version.etag = reply.headers.get("ETag") ?? "";
    if (answer?.server_time && isOwn(reply, method, id)) {
      clock.learn(answer.server_time, sentAt, performance.now());
    }
    return answer;
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Unreachable(String(error));
  } finally {
    clearTimeout(timer);
  }
}

/** @param {string} id @param {CallOptions} options */
function headersOf(id, { body, secret, key, version }) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json", "Request-Id": id };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (secret) headers[secret.startsWith("bs_") ? "Booking-Secret" : "Hold-Secret"] = secret;
  if (key) headers["Idempotency-Key"] = key;
  if (version?.etag) headers["If-None-Match"] = version.etag;
  if (bearer) headers.Authorization = `Bearer ${bearer}`;
  return headers;
}

/**
 * Whether an answer was written for this very request. A cache on the way gives out an answer with
 * the id of another request; one with an ETag may be an old answer that was found to be unchanged.
 * @param {Response} reply @param {string} method @param {string} id
 */
function isOwn(reply, method, id) {
  if (method !== "GET") return true;
  return reply.headers.get("Request-Id") === id && !reply.headers.has("ETag");
}

/** @param {Response} reply @param {string} text */
function parsed(reply, text) {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch (error) {
    // A proxy's HTML error page is still an answer with a status; a broken success is not.
    if (reply.ok) throw error;
    return null;
  }
}

/** The text of an answer. @param {Response} reply @param {() => void} heard  Called with each part. */
async function inParts(reply, heard) {
  heard();
  const reader = reply.body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    heard();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
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
