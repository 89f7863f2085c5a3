//! Every kind of problem the API knows: its code, its status, and what a person should know of it.
//! The one table behind `problem+json` answers and the pages under `/problems/`.

use axum::http::StatusCode;
use soldonce_core::Rejection;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// The code of api.md 2.
    pub(super) code: &'static str,
    /// Where its page is; also its `type`.
    pub(super) page: &'static str,
    pub(super) status: StatusCode,
    /// A short name for people.
    pub(super) title: &'static str,
    pub(super) happened: &'static str,
    /// What to do about it.
    pub(super) fix: &'static str,
    /// The members that never differ, as JSON up to the word of the advice.
    pub(super) head: &'static str,
    /// What happened, as JSON.
    pub(super) happened_json: &'static str,
}

/// Declares the kinds as constants and lists them all. Texts have nothing that JSON escapes.
macro_rules! kinds {
    ($($name:ident $code:literal $page:literal $status:literal $title:literal, $happened:literal, $fix:literal;)*) => {
        $(
            pub(super) const $name: Kind = Kind {
                code: $code,
                page: concat!("/problems/", $page),
                status: status($status),
                title: $title,
                happened: $happened,
                fix: $fix,
                head: concat!(
                    "{\"type\":\"/problems/", $page, "\",\"title\":\"", $title, "\",\"status\":",
                    $status, ",\"code\":\"", $code, "\",\"advice\":\""
                ),
                happened_json: concat!("\"", $happened, "\""),
            };
        )*

        /// Every kind, by status.
        pub(super) const ALL: &[&Kind] = &[$(&$name),*];
    };
}

const fn status(code: u16) -> StatusCode {
    match StatusCode::from_u16(code) {
        Ok(status) => status,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

kinds! {
    INVALID_REQUEST "invalid_request" "invalid-request" 400
        "The request is not understood",
        "A field, a header or a query value is missing, unknown or out of its bounds; `detail` names the place.",
        "Change what `detail` names and send the request again.";
    IDEMPOTENCY_KEY_MISSING "idempotency_key_missing" "idempotency-key-missing" 400
        "An Idempotency-Key is needed",
        "This route sells or gives back, so it must be safe to repeat, and no `Idempotency-Key` header came with it.",
        "Send a fresh random key with each new request, and the same key when you repeat one.";
    TOO_MANY_UNITS "too_many_units" "too-many-units" 400
        "Too many units at once",
        "One hold or one call of staff may not have that many units; `limit` is the most.",
        "Ask for fewer units at once. A holder may have several holds if its budget allows it.";
    UNAUTHENTICATED "unauthenticated" "unauthenticated" 401
        "Who are you?",
        "No API key or session came with the request, or it is unknown, revoked or over.",
        "Send `Authorization: Bearer <api key>`, or open a session with `POST /v1/sessions` where shoppers are let in.";
    FORBIDDEN "forbidden" "forbidden" 403
        "This caller may not do that",
        "The key's scopes, or the session, do not allow this route; or the request came from a page of another origin.",
        "Use a key with the scope that `detail` names, or let the page in with `--origins`.";
    NOT_FOUND "not_found" "not-found" 404
        "There is nothing here",
        "The server has no such route or thing.",
        "Compare the path with the API description at /docs.";
    EVENT_NOT_FOUND "event_not_found" "event-not-found" 404
        "No such event",
        "There is no event of this id.",
        "List the events with `GET /v1/events`.";
    HOLD_NOT_FOUND "hold_not_found" "hold-not-found" 404
        "No such hold",
        "There is no hold of this id that this caller may see, or the `Hold-Secret` that was sent is not its secret.",
        "Use the id and the secret from the answer that created the hold.";
    BOOKING_NOT_FOUND "booking_not_found" "booking-not-found" 404
        "No such booking",
        "There is no booking of this id that this caller may see.",
        "Use the id from the answer that confirmed the hold.";
    UNKNOWN_UNIT "unknown_unit" "unknown-unit" 404
        "There is no such unit",
        "The chart of the event has no seat or area of the ids in `unknown`, or what is to be given up is not in the hold or the booking.",
        "Take ids from `GET /v1/events/{event}/chart`, and what is given up from the hold or the booking.";
    METHOD_NOT_ALLOWED "method_not_allowed" "method-not-allowed" 405
        "Not with this method",
        "The path exists, but not for this method.",
        "Use one of the methods in the `Allow` header.";
    REQUEST_TIMEOUT "request_timeout" "request-timeout" 408
        "The request took too long to arrive",
        "The body did not arrive in time. Nothing was done.",
        "Send the request again.";
    UNIT_UNAVAILABLE "unit_unavailable" "unit-unavailable" 409
        "Not all of these units can be had",
        "At least one wanted unit is held, sold or not for sale. `conflicts` names every one, why, and when it may be free; nothing was taken.",
        "Take one of `alternatives`, choose again, or try later where `retry_after_ms` is given.";
    HOLD_EXPIRED "hold_expired" "hold-expired" 409
        "The hold is over",
        "Its time had run out when the request was decided.",
        "Hold the units again if they are still free.";
    HOLD_RELEASED "hold_released" "hold-released" 409
        "The hold was given up",
        "Its holder released it before.",
        "Hold the units again if they are still free.";
    HOLD_CONSUMED "hold_consumed" "hold-consumed" 409
        "The hold is a booking by now",
        "It was confirmed before; `booking` is the booking.",
        "Read the booking.";
    HOLD_REVOKED "hold_revoked" "hold-revoked" 409
        "The hold was taken back",
        "Staff ended it, or the event was called off; `reason` says why.",
        "Hold other units, if the event still sells.";
    CAP_REACHED "cap_reached" "cap-reached" 409
        "The hold cannot be extended any further",
        "It is at `max_expires_at` already.",
        "Confirm it before its end.";
    STALE_FENCE "stale_fence" "stale-fence" 409
        "The hold has moved on",
        "The fence in the request is not the hold's present one, which is `fence`.",
        "Read the hold, and decide again.";
    NOT_ON_SALE "not_on_sale" "not-on-sale" 409
        "Not on sale now",
        "The sale has not opened yet, has closed, or the event was called off. `sale_opens_at` is given when it is still to open.",
        "Come back when the sale is open.";
    ADJACENCY_REFUSED "adjacency_refused" "adjacency-refused" 409
        "That would leave a single seat alone",
        "The event does not sell choices that leave the seats in `orphans` free between others.",
        "Choose seats side by side, or include the named seat.";
    BUDGET_EXCEEDED "budget_exceeded" "budget-exceeded" 409
        "The holder has too many units",
        "With this request the holder would have more than `limit` units of the event; `used` count already.",
        "Release or confirm something first.";
    ALREADY_CANCELLED "already_cancelled" "already-cancelled" 409
        "Already cancelled",
        "The lines in `units` were given back before.",
        "Read the booking.";
    EVENT_EXISTS "event_exists" "event-exists" 409
        "Another event has this id",
        "An event of this id was created by a request with another body.",
        "Choose another id, or change the event's policy with PATCH.";
    EVENT_NOT_OVER "event_not_over" "event-not-over" 409
        "The event is not over",
        "An event can be dropped once its sale has closed and it has started, or it was called off, and nothing of it has changed for 8 days. `droppable_at` says when that will be, if it will.",
        "Come back then; or call the event off.";
    EVENT_IN_USE "event_in_use" "event-in-use" 409
        "Something of the event is not done",
        "It has live holds, payments that are not settled, steps at the payment provider or messages to webhook endpoints that are still to be made.",
        "Repeat later; if it stays, see `soldonce reconcile` and the deliveries of the webhook endpoints.";
    PAYMENT_IN_PROGRESS "payment_in_progress" "payment-in-progress" 409
        "A payment is in progress",
        "The payment of `booking` is not done: its hold is pinned by it, or the money of lines to give back is not taken yet.",
        "Finish or abandon the payment of a hold first; for an exchange ask again in a moment.";
    PAYMENT_REQUIRED "payment_required" "payment-required" 409
        "The difference must be paid first",
        "The new units cost more than was paid.",
        "Take the hold of the new units through checkout.";
    PAYMENT_MISMATCH "payment_mismatch" "payment-mismatch" 409
        "The payment is not this booking's",
        "The provider reports another intent, amount or currency than `booking` asked for.",
        "Compare the booking with the payment at the provider.";
    BOOKING_NOT_CONFIRMED "booking_not_confirmed" "booking-not-confirmed" 409
        "The booking has nothing to give back",
        "It is not confirmed, so it has no units that could be given back.",
        "Read the booking.";
    CANCEL_CLOSED "cancel_closed" "cancel-closed" 409
        "It is too late to cancel",
        "The owner of a booking could cancel until `cancel_until`.",
        "Ask the organiser.";
    PAYMENT_REFUSED "payment_refused" "payment-refused" 409
        "The payment provider refused",
        "It does not take this payment; the hold is as after a failed payment.",
        "Read the hold and begin another checkout; if it stays, tell the operator the `Request-Id`.";
    NOTHING_PAID "nothing_paid" "nothing-paid" 409
        "Nothing was paid",
        "No money of this booking went through a provider, so none can go back.",
        "Send it back where it was paid; cancel the booking to free its units.";
    LAST_ADMIN_KEY "last_admin_key" "last-admin-key" 409
        "It is the last admin key",
        "Without it no key could make or revoke keys any more. It still works.",
        "Make another key with scope `admin` first, and revoke this one with that.";
    LEASE_HELD "lease_held" "lease-held" 409
        "Another has the lease",
        "Another owner holds the name, or one of the names, and did so for the whole wait. Nothing was granted.",
        "Ask again, with `wait_ms`, or after `retry_after_ms`: then it ends unless its holder renews it.";
    LEASE_LOST "lease_lost" "lease-lost" 409
        "The lease is over",
        "`reason` says how: `gone` (its time was over, it was released or ended by an operator), `taken` (another has it) or `capped` (it lived as long as it may).",
        "Stop the work that it covers, and acquire anew. What was written late, the target refuses if it compares tokens.";
    EVENT_DROPPED "event_dropped" "event-dropped" 410
        "The event is gone",
        "It was over and was dropped with all its holds and bookings. Its id is not used again.",
        "List the events with `GET /v1/events`; `soldonce why` says when it was dropped, and by whom.";
    BODY_TOO_LARGE "body_too_large" "body-too-large" 413
        "The body is too large",
        "A body may have `limit` bytes on this route.",
        "Send less at once.";
    UNSUPPORTED_MEDIA_TYPE "unsupported_media_type" "unsupported-media-type" 415
        "The body must be JSON",
        "The `Content-Type` of the request is not `application/json`, or the body is encoded.",
        "Send plain JSON with `Content-Type: application/json`.";
    IDEMPOTENCY_KEY_REUSED "idempotency_key_reused" "idempotency-key-reused" 422
        "The key belongs to another request",
        "This `Idempotency-Key` was used on this route for another path or body. Nothing was done.",
        "Use a fresh key for each new request.";
    RATE_LIMITED "rate_limited" "rate-limited" 429
        "A little too much at once",
        "This address, session or key asks for more in a while than it may, or shoppers at this address hold more than they may; `detail` says which, and the `RateLimit-Policy` header how much that is. Nothing was done.",
        "Wait `Retry-After` seconds, or `retry_after_ms`; or buy or release what is held. Keep what is left of `RateLimit` in view to ask evenly.";
    INTERNAL_ERROR "internal_error" "internal-error" 500
        "The server failed",
        "The server could not finish the request. It is not known whether it took effect.",
        "Read the state, or repeat with the same `Idempotency-Key`. If it stays, give the operator the `Request-Id`.";
    PAYMENT_UNAVAILABLE "payment_unavailable" "payment-unavailable" 503
        "The payment provider does not answer",
        "The payment may have begun; the hold is pinned meanwhile.",
        "Repeat with the same `Idempotency-Key` after `Retry-After` seconds.";
    LEASES_UNAVAILABLE "leases_unavailable" "leases-unavailable" 503
        "Leases cannot be reached at present",
        "Where this server has its leases does not answer; nothing was done.",
        "Repeat after `Retry-After` seconds. A lease that is held ends at its deadline if it cannot be renewed.";
    OVERLOADED "overloaded" "overloaded" 503
        "Very busy right now",
        "Too much waits already; nothing was done.",
        "Repeat after `Retry-After` seconds.";
    READ_ONLY "read_only" "read-only" 503
        "No changes are taken at present",
        "The ledger cannot store or cannot be reached; nothing was done.",
        "Repeat after `Retry-After` seconds. If it stays, tell the operator.";
    OUTCOME_UNKNOWN "outcome_unknown" "outcome-unknown" 503
        "It is not known whether it took effect",
        "The ledger did not say whether the command was stored.",
        "Repeat with the same `Idempotency-Key` after `Retry-After` seconds: the answer says what became of it. Without a key, read the state first.";
    MEMORY_MISMATCH "memory_mismatch" "memory-mismatch" 503
        "The server remembers something else than its ledger has",
        "Nothing was done. The server takes no more commands, and ends so that it is started again; its log says what differed.",
        "Repeat after `Retry-After` seconds. The operator should run `soldonce verify`.";
    SHUTTING_DOWN "shutting_down" "shutting-down" 503
        "The server is stopping",
        "It takes no commands any more; nothing was done.",
        "Repeat after `Retry-After` seconds: another server answers, or this one once it is back.";
}

/// Returns the kind of a rejection: the one of the same code.
pub(super) fn of_rejection(rejection: &Rejection) -> &'static Kind {
    let code = rejection.code();
    let found = ALL.iter().find(|kind| kind.code == code);
    found.copied().unwrap_or(&INTERNAL_ERROR)
}

/// Finds the kind whose page has this name.
pub(super) fn by_page(name: &str) -> Option<&'static Kind> {
    let is_named = |kind: &&&'static Kind| kind.page.strip_prefix("/problems/") == Some(name);
    ALL.iter().find(is_named).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_the_code_with_dashes() {
        for kind in ALL {
            assert_eq!(
                kind.page,
                format!("/problems/{}", kind.code.replace('_', "-"))
            );
            assert_eq!(by_page(&kind.code.replace('_', "-")), Some(*kind));
        }
    }

    #[test]
    fn the_constant_part_is_json() {
        for kind in ALL {
            let text = format!("{}x\",\"detail\":{}}}", kind.head, kind.happened_json);
            let read: serde_json::Value = serde_json::from_str(&text).unwrap();
            let expected = serde_json::json!({
                "type": kind.page, "title": kind.title, "status": kind.status.as_u16(),
                "code": kind.code, "advice": "x", "detail": kind.happened,
            });
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn codes_are_distinct_and_those_of_all_rejections_are_among_them() {
        let codes: std::collections::BTreeSet<_> = ALL.iter().map(|kind| kind.code).collect();
        assert_eq!(codes.len(), ALL.len());
        let missing = soldonce_core::REJECTION_CODES
            .iter()
            .find(|code| !codes.contains(*code));
        assert_eq!(missing, None);
    }

    #[test]
    fn the_specification_lists_each_code_with_its_status() {
        let text = include_str!("../../../../docs/spec/api.md");
        let rows = text
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
        let rows: Vec<(&str, &str)> = rows.collect();
        let is_listed = |kind: &&&Kind| {
            let (status, code) = (kind.status.as_str(), format!("`{}`", kind.code));
            let is_its =
                |(all, codes): &(&str, &str)| all.contains(status) && codes.contains(&code);
            rows.iter().any(is_its)
        };
        let missing = ALL.iter().find(|kind| !is_listed(kind));
        assert_eq!(missing.map(|kind| kind.code), None);
    }
}
