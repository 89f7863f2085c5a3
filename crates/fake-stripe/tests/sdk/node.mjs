// The official SDK for Node.js, as a shop uses it, against fake-stripe. Fails with an exception.

import assert from "node:assert/strict";
import { text } from "node:stream/consumers";

import Stripe from "stripe";

const told = JSON.parse(await text(process.stdin));

function clientOf(account, key, apiVersion) {
  const { hostname: host, port } = new URL(account.url);
  const more = apiVersion ? { apiVersion } : {};
  return new Stripe(key ?? account.key, { host, port, protocol: "http", maxNetworkRetries: 0, ...more });
}

/** The error of a call, which must be of exactly this class and have the id of a request. */
async function refused(kind, call) {
  const error = await call().then(
    () => assert.fail(`no ${kind}`),
    (error) => error,
  );
  assert.equal(error.type, kind, String(error));
  assert.match(error.requestId, /^req_/);
  return error;
}

const stripe = clientOf(told);
const intents = stripe.paymentIntents;
const INTENT = {
  amount: 900,
  currency: "eur",
  capture_method: "manual",
  automatic_payment_methods: { enabled: true, allow_redirects: "never" },
  metadata: { booking: "b1" },
};
const created = (more) => intents.create({ ...INTENT, ...more });
const paid = (more) => created({ confirm: true, payment_method: "pm_card_visa", ...more });

// What was planned for the first calls of this route, one by one.
const busy = await refused("StripeRateLimitError", () => stripe.refunds.retrieve("re_x"));
assert.deepEqual([busy.code, busy.headers["retry-after"]], ["rate_limit", "7"]);
await refused("StripeAPIError", () => stripe.refunds.retrieve("re_x"));
// After a connection that was closed this SDK asks once more, with any number of retries.
await refused("StripeInvalidRequestError", () => stripe.refunds.retrieve("re_x"));

// One key: the first answer again, nothing else, and one call at a time.
const keyed = { idempotencyKey: "k1" };
const first = await intents.create(INTENT, keyed);
const again = await intents.create(INTENT, keyed);
assert.deepEqual([again.id, again.lastResponse.headers["idempotent-replayed"]], [first.id, "true"]);
await refused("StripeIdempotencyError", () => intents.create({ ...INTENT, amount: 901 }, keyed));
const cancel = () => intents.cancel(first.id, {}, { idempotencyKey: "k2" });
const both = await Promise.allSettled([cancel(), cancel()]);
const outcomes = both.map((one) => one.value?.status ?? one.reason.code).sort();
assert.deepEqual(outcomes, ["canceled", "idempotency_key_in_use"]);

// Create, retrieve, confirm, capture.
const intent = await created();
assert.equal(intent.status, "requires_payment_method");
assert.match(intent.lastResponse.requestId, /^req_/);
const confirmed = await intents.confirm(intent.id, { payment_method: "pm_card_visa" });
assert.equal(confirmed.amount_capturable, 900);
const captured = await intents.capture(intent.id, { amount_to_capture: 600 });
assert.deepEqual([captured.status, captured.amount_received], ["succeeded", 600]);
const seen = await intents.retrieve(intent.id, { expand: ["latest_charge"] });
assert.deepEqual([seen.latest_charge.amount_refunded, seen.metadata.booking], [300, "b1"]);

// Create and confirm in one call, or with a card for later; cancel.
assert.equal((await paid()).status, "requires_capture");
const named = await created({ payment_method: "pm_card_visa" });
assert.equal(named.status, "requires_confirmation");
assert.equal((await intents.confirm(named.id)).status, "requires_capture");
const reason = { cancellation_reason: "abandoned" };
assert.equal((await intents.cancel(named.id, reason)).status, "canceled");
const over = await refused("StripeInvalidRequestError", () => intents.capture(named.id));
assert.equal(over.code, "payment_intent_unexpected_state");
assert.equal(over.payment_intent.id, named.id);

// A card that says no, and one that asks.
const poor = { confirm: true, payment_method: "pm_card_visa_chargeDeclinedInsufficientFunds" };
const declined = await refused("StripeCardError", () => created(poor));
assert.deepEqual([declined.code, declined.decline_code], ["card_declined", "insufficient_funds"]);
const secure = await created({ confirm: true, payment_method: "pm_card_authenticationRequired" });
assert.equal(secure.next_action.type, "redirect_to_url");

// Refunds, all of them page by page.
const big = await paid({ capture_method: "automatic" });
const made = [];
for (let n = 0; n < 5; n++) {
  made.unshift((await stripe.refunds.create({ payment_intent: big.id, amount: 10 + n })).id);
}
const listed = [];
for await (const refund of stripe.refunds.list({ payment_intent: big.id, limit: 2 })) listed.push(refund.id);
assert.deepEqual(listed, made);
assert.equal((await stripe.refunds.retrieve(made[4])).amount, 10);
const much = { payment_intent: big.id, amount: 900 };
assert.equal((await refused("StripeInvalidRequestError", () => stripe.refunds.create(much))).code, "amount_too_large");

// What is wrong is named.
for (const [wrong, code, param] of [
  [{ amount: undefined }, "parameter_missing", "amount"],
  [{ currency: "xqz" }, "parameter_invalid", "currency"],
  [{ statement_descriptor: "x" }, "parameter_unknown", "statement_descriptor"],
]) {
  const error = await refused("StripeInvalidRequestError", () => created(wrong));
  assert.deepEqual([error.code, error.param], [code, param]);
}
await refused("StripeInvalidRequestError", () => intents.retrieve("pi_x"));
const misspelt = clientOf(told, told.key, "2025-03-31.basel");
await refused("StripeInvalidRequestError", () => misspelt.paymentIntents.retrieve(first.id));
await refused("StripeAuthenticationError", () => clientOf(told, "sk_test_x").paymentIntents.retrieve(first.id));
await refused("StripePermissionError", () => clientOf(told, told.publishable).paymentIntents.cancel(first.id));

// A platform names the account that it acts for.
const platform = clientOf(told.connected).paymentIntents;
assert.equal((await platform.create(INTENT, { stripeAccount: told.connected.account })).amount, 900);
await refused("StripePermissionError", () => platform.create(INTENT));

// Notices.
const event = stripe.webhooks.constructEvent(told.notice, told.signature, told.secret);
assert.deepEqual([event.type, event.data.object.amount], ["payment_intent.created", 900]);
for (const forged of [[`${told.notice} `, told.signature, told.secret], [told.notice, told.signature, "whsec_x"]]) {
  assert.throws(() => stripe.webhooks.constructEvent(...forged), { type: "StripeSignatureVerificationError" });
}
