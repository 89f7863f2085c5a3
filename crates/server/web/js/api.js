// Speaks HTTP to the server. Every call ends in one of three ways: the answer, a `Refused` (the
// server decided against it), or an `Unreachable` (it is not known whether the server decided at
// all). Callers must not treat the third as the second: the change may have happened.

import { clock } from "./clock.js";
import { lasting, remembers } from "./storage.js";

/** @typedef {import("./wire.js").Problem} Problem */
/** @typedef {import("./wire.js").Route} Route */
/** @template {Route} R @typedef {import("./wire.js").Call<R>} Call */
/** @template {Route} R @typedef {import("./wire.js").Answer<R>} Answer */

// Without a byte for this long a call is given up; a large answer may take longer as a whole.
const SILENCE_MS = 12_000;
const PAGES_MAX = 20;
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
  openingSession ??= request({ route: "POST /v1/sessions", body: {} })
    .then(({ session }) => {
      lasting.set(SESSION_MARK, "open");
      // Where a cookie did not come back once, the next one will not either.
      if (bearer || !remembers()) bearer = session;
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
 * @template {Route} R @param {Call<R>} call @returns {Promise<Answer<R>>}
 */
export async function asShopper(call) {
  if (!hadSession()) await openSession();
  try {
    return await request(call);
  } catch (error) {
    if (!isUnauthenticated(error)) throw error;
  }
  const token = await openSession();
  try {
    return await request(call);
  } catch (error) {
    if (!isUnauthenticated(error) || bearer) throw error;
  }
  // The cookie of a new session did not come back: this browser keeps none.
  bearer = token;
  return request(call);
}

/** @param {unknown} error */
function isUnauthenticated(error) {
  return error instanceof Refused && error.problem.status === 401;
}

/**
 * A read that is open to anyone, or to shoppers only: which, the server says.
 * @template {Route} R @param {Call<R>} call @returns {Promise<Answer<R>>}
 */
export async function asAnyone(call) {
  try {
    return await request(call);
  } catch (error) {
    if (isUnauthenticated(error)) return asShopper(call);
    throw error;
  }
}

/** @template {Route} R @param {Call<R>} call @returns {Promise<Answer<R>>} */
export async function request(call) {
  const { body, version, isLasting } = call;
  const [method, template] = call.route.split(" ");
  const path = template.replace(/\{.*?\}/, encodeURIComponent(call.id ?? ""));
  const { after, digest, fence } = call;
  const known = digest ? `&digest=${digest}` : "";
  const query = after ? `?after=${encodeURIComponent(after)}${known}` : fence === undefined ? "" : `?fence=${fence}`;
  const requestId = newKey();
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(), SILENCE_MS);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(), SILENCE_MS);
  };
  const sentAt = performance.now();
  try {
    const reply = await fetch(path + query, {
      method,
      headers: headersOf(requestId, call),
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: abort.signal,
      // The browser would hand an unchanged answer out as if it had just been written.
      cache: isLasting ? "default" : "no-store",
    });
    if (reply.status === 304) return /** @type {any} */ (null);
    // Charts and snapshots may take long to arrive; all else comes in one piece.
    const isLarge = Boolean(isLasting || version);
    const answer = parsed(reply, isLarge ? await inParts(reply, heard) : await reply.text());
    if (!reply.ok) throw refusal(reply, answer);
    if (version) version.etag = reply.headers.get("ETag") ?? "";
    if (answer?.server_time && isOwn(reply, method, requestId)) {
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

/** @param {string} id @param {Call<any>} call */
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
  // Gateways speak for a server they could not reach: what became of the request is unknown.
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

/**
 * Pages through a list route. Bounded, so a wrong cursor cannot loop.
 * @template {"GET /v1/events"|"GET /v1/holds"|"GET /v1/bookings"} R
 * @param {(call: Call<R>) => Promise<any>} via @param {R} route
 * @returns {Promise<import("./wire.js").Rows<R>[]>}
 */
export async function listAll(via, route) {
  const field = route.replace("GET /v1/", "");
  const found = [];
  let after = "";
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await via({ route, after });
    found.push(...answer[field]);
    after = answer.next ?? "";
    if (!after) break;
  }
  return found;
}
