"""The official SDK for Python, as a shop uses it, against fake-stripe. Fails with a traceback."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import stripe

told = json.load(sys.stdin)


def client_of(account, key=None):
    return stripe.StripeClient(
        key or account["key"],
        base_addresses={"api": account["url"]},
        max_network_retries=0,
    ).v1


def refused(kind, call):
    """The error of a call, which must be of exactly this class and have the id of a request."""
    try:
        call()
    except stripe.StripeError as error:
        assert type(error) is kind, repr(error)
        assert kind is stripe.APIConnectionError or error.request_id.startswith("req_"), error.headers
        return error
    raise AssertionError(f"no {kind.__name__}")


v1 = client_of(told)
INTENT = {
    "amount": 900,
    "currency": "eur",
    "capture_method": "manual",
    "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
    "metadata": {"booking": "b1"},
}


def created(**more):
    return v1.payment_intents.create({**INTENT, **more})


def paid(**more):
    return created(confirm=True, payment_method="pm_card_visa", **more)


# What was planned for the first calls of this route, one by one.
busy = refused(stripe.RateLimitError, lambda: v1.refunds.retrieve("re_x"))
assert (busy.error.code, busy.headers["retry-after"]) == ("rate_limit", "7"), busy.headers
refused(stripe.APIError, lambda: v1.refunds.retrieve("re_x"))
refused(stripe.APIConnectionError, lambda: v1.refunds.retrieve("re_x"))

# One key: the first answer again, nothing else, and one call at a time.
keyed = {"idempotency_key": "k1"}
first = v1.payment_intents.create(INTENT, keyed)
again = v1.payment_intents.create(INTENT, keyed)
assert (again.id, again.last_response.headers["idempotent-replayed"]) == (first.id, "true")
other = {**INTENT, "amount": 901}
refused(stripe.IdempotencyError, lambda: v1.payment_intents.create(other, keyed))


def cancel(_):
    try:
        return v1.payment_intents.cancel(first.id, None, {"idempotency_key": "k2"}).status
    except stripe.StripeError as error:
        return (error.http_status, error.error.code)


with ThreadPoolExecutor() as pool:
    both = sorted(map(str, pool.map(cancel, range(2))))
assert both == ["(409, 'idempotency_key_in_use')", "canceled"], both

# Create, retrieve, confirm, capture.
intent = created()
assert (intent.status, intent.amount) == ("requires_payment_method", 900)
assert intent.last_response.headers["request-id"].startswith("req_")
confirmed = v1.payment_intents.confirm(intent.id, {"payment_method": "pm_card_visa"})
assert (confirmed.status, confirmed.amount_capturable) == ("requires_capture", 900)
captured = v1.payment_intents.capture(intent.id, {"amount_to_capture": 600})
assert (captured.status, captured.amount_received) == ("succeeded", 600)
seen = v1.payment_intents.retrieve(intent.id, {"expand": ["latest_charge"]})
assert (seen.latest_charge.amount_captured, seen.latest_charge.amount_refunded) == (600, 300)
assert seen.metadata["booking"] == "b1"

# Create and confirm in one call, or with a card for later.
assert paid().status == "requires_capture"
assert paid(capture_method="automatic").status == "succeeded"
named = created(payment_method="pm_card_visa")
assert named.status == "requires_confirmation"
assert v1.payment_intents.confirm(named.id).status == "requires_capture"

# Cancel; what is over stays over.
cancelled = v1.payment_intents.cancel(named.id, {"cancellation_reason": "abandoned"})
assert (cancelled.status, cancelled.cancellation_reason) == ("canceled", "abandoned")
over = refused(stripe.InvalidRequestError, lambda: v1.payment_intents.capture(named.id))
assert (over.code, over.http_status) == ("payment_intent_unexpected_state", 400)
assert over.error.payment_intent.id == named.id

# Cards that say no.
DECLINES = [
    ("pm_card_visa_chargeDeclined", "card_declined", "generic_decline", None),
    ("pm_card_visa_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds", None),
    ("pm_card_visa_chargeDeclinedLostCard", "card_declined", "lost_card", None),
    ("pm_card_chargeDeclinedExpiredCard", "expired_card", "expired_card", "exp_month"),
    ("pm_card_chargeDeclinedIncorrectCvc", "incorrect_cvc", "incorrect_cvc", "cvc"),
    ("pm_card_chargeDeclinedProcessingError", "processing_error", "processing_error", None),
]
for card, code, reason, param in DECLINES:
    no = refused(stripe.CardError, lambda: created(confirm=True, payment_method=card))
    assert (no.code, no.param, no.http_status) == (code, param, 402), card
    assert no.error.decline_code == reason, card
    left = v1.payment_intents.retrieve(no.error.payment_intent.id)
    assert (left.status, left.last_payment_error.code) == ("requires_payment_method", code), card
secure = created(confirm=True, payment_method="pm_card_authenticationRequired")
assert (secure.status, secure.next_action.type) == ("requires_action", "redirect_to_url")

# Refunds, all of them page by page.
big = paid(capture_method="automatic")
made = [v1.refunds.create({"payment_intent": big.id, "amount": 10 + n}).id for n in range(5)]
listed = v1.refunds.list({"payment_intent": big.id, "limit": 2}).auto_paging_iter()
assert [refund.id for refund in listed] == made[::-1]
kinds = [event.type for event in v1.events.list({"limit": 3}).auto_paging_iter()]
assert kinds.count("refund.created") == 5 and kinds[-1] == "payment_intent.created", kinds
assert v1.refunds.retrieve(made[0]).amount == 10
much = refused(
    stripe.InvalidRequestError,
    lambda: v1.refunds.create({"payment_intent": big.id, "amount": 900}),
)
assert much.code == "amount_too_large"
late = created(confirm=True, capture_method="automatic", payment_method="pm_card_refundFail")
back = v1.refunds.create({"payment_intent": late.id})
assert (back.status, v1.refunds.retrieve(back.id).status) == ("succeeded", "failed")

# What is wrong is named.
for wrong, code, param in [
    ({"amount": None}, "parameter_missing", "amount"),
    ({"currency": "xqz"}, "parameter_invalid", "currency"),
    ({"statement_descriptor": "x"}, "parameter_unknown", "statement_descriptor"),
    ({"payment_method": "pm_card_x"}, "parameter_invalid", "payment_method"),
]:
    asked = {name: value for name, value in {**INTENT, **wrong}.items() if value is not None}
    error = refused(stripe.InvalidRequestError, lambda: v1.payment_intents.create(asked))
    assert (error.code, error.param) == (code, param), error
missing = refused(stripe.InvalidRequestError, lambda: v1.payment_intents.retrieve("pi_x"))
assert (missing.code, missing.http_status) == ("resource_missing", 404)
version = {"stripe_version": "2025-03-31.basel"}
refused(stripe.InvalidRequestError, lambda: v1.payment_intents.retrieve(first.id, None, version))
stranger = client_of(told, "sk_test_x")
refused(stripe.AuthenticationError, lambda: stranger.payment_intents.retrieve(first.id))
page = client_of(told, told["publishable"])
refused(stripe.PermissionError, lambda: page.payment_intents.cancel(first.id))

# A platform names the account that it acts for.
platform = client_of(told["connected"])
named = {"stripe_account": told["connected"]["account"]}
assert platform.payment_intents.create(INTENT, named).amount == 900
refused(stripe.PermissionError, lambda: platform.payment_intents.create(INTENT))
unknown = {"stripe_account": "acct_x"}
refused(stripe.PermissionError, lambda: platform.payment_intents.create(INTENT, unknown))

# Notices.
body, signature = told["notice"], told["signature"]
event = stripe.Webhook.construct_event(body, signature, told["secret"])
assert (event.type, event.data.object.amount) == ("payment_intent.created", 900)
for forged in [(body + " ", signature, told["secret"]), (body, signature, "whsec_x")]:
    try:
        stripe.Webhook.construct_event(*forged)
        raise AssertionError("a forged notice passed")
    except stripe.SignatureVerificationError:
        pass
