//! Every rejection once: its status, its code, its advice and its further members (api.md 2).

use std::collections::BTreeSet;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use soldonce_core::{
    Alternative, AreaNo, BookingId, Budget, Chart, Conflict, ConflictState, Fence, Invalid,
    REJECTION_CODES, Rejection, Seq, Span, Text, Timestamp, Unavailable, UnitNo,
};
use soldonce_engine::chart;

use super::*;

fn chart() -> Chart {
    let json = json!({
        "format": "seats",
        "seats": [{"seat": "A-1", "category": "x"}, {"seat": "A-2", "category": "x"}],
        "areas": [{"area": "floor", "capacity": 5, "category": "x"}],
    });
    chart::read(json.to_string().as_bytes()).unwrap().chart
}

fn unavailable() -> Rejection {
    let conflict = |unit, state, retry_after| Conflict::Seat {
        unit: UnitNo(unit),
        state,
        retry_after,
    };
    Rejection::UnitUnavailable(Box::new(Unavailable {
        conflicts: vec![
            conflict(0, ConflictState::Held, Some(Span::from_ms(1_234))),
            conflict(1, ConflictState::Yours, None),
            Conflict::Area {
                area: AreaNo(0),
                free: 3,
            },
        ],
        alternatives: vec![Alternative {
            units: vec![UnitNo(1), UnitNo(4)],
            together: false,
        }],
        seq: Seq(7),
    }))
}

/// Lists rejections, each with its status, its advice and its further members.
macro_rules! rows {
    ($($rejection:expr => $status:literal $advice:literal $members:tt;)*) => {
        vec![$(($rejection, $status, $advice, json!($members))),*]
    };
}

fn table() -> Vec<(Rejection, u16, &'static str, Value)> {
    let (booking, at) = (BookingId::from_bits(5), Timestamp::from_ms(0));
    let (id, zero) = (booking.to_string(), "1970-01-01T00:00:00.000Z");
    let text = |text| Text::parse(text).unwrap();
    let conflicts = json!({
        "conflicts": [
            {"seat": "A-1", "state": "held", "retry_after_ms": 1234},
            {"seat": "A-2", "state": "yours"},
            {"area": "floor", "state": "full", "free": 3},
        ],
        "alternatives": [{"units": [{"seat": "A-2"}, {"area": "floor", "place": "floor.3"}], "together": false}],
        "seq": 7,
    });
    let no_sale = |opens_at| Rejection::NotOnSale { opens_at };
    let budget = |budget| Rejection::BudgetExceeded {
        budget,
        limit: 20,
        used: 19,
    };
    rows! {
        Invalid::new("x", "y".to_owned()).into() => 400 "do_not_retry" {};
        unavailable() => 409 "retry_after" conflicts;
        Rejection::UnknownUnit(vec!["Z-1".to_owned()]) => 404 "do_not_retry" {"unknown": ["Z-1"]};
        Rejection::EventNotFound => 404 "do_not_retry" {};
        Rejection::EventExists => 409 "do_not_retry" {};
        Rejection::EventDropped => 410 "do_not_retry" {};
        Rejection::EventNotOver(Some(at)) => 409 "retry_after" {"droppable_at": zero};
        Rejection::EventNotOver(None) => 409 "do_not_retry" {};
        Rejection::EventInUse => 409 "retry_after" {};
        no_sale(Some(at)) => 409 "retry_after" {"sale_opens_at": zero};
        no_sale(None) => 409 "do_not_retry" {};
        budget(Budget::Held) => 409 "do_not_retry" {"budget": "held", "limit": 20, "used": 19};
        budget(Budget::Bought) => 409 "do_not_retry" {"budget": "bought", "limit": 20, "used": 19};
        Rejection::AdjacencyRefused(vec![UnitNo(0)]) => 409 "do_not_retry" {"orphans": [{"seat": "A-1"}]};
        Rejection::TooManyUnits { limit: 10 } => 400 "do_not_retry" {"limit": 10};
        Rejection::HoldNotFound => 404 "do_not_retry" {};
        Rejection::HoldExpired => 409 "reacquire" {};
        Rejection::HoldReleased => 409 "reacquire" {};
        Rejection::HoldConsumed(booking) => 409 "ask_state" {"booking": id};
        Rejection::HoldRevoked(text("ill")) => 409 "reacquire" {"reason": "ill"};
        Rejection::CapReached(at) => 409 "do_not_retry" {"max_expires_at": zero};
        Rejection::StaleFence(Fence(9)) => 409 "ask_state" {"fence": 9};
        Rejection::PaymentInProgress(booking) => 409 "ask_state" {"booking": id};
        Rejection::PaymentRequired => 409 "do_not_retry" {};
        Rejection::PaymentMismatch(booking) => 409 "do_not_retry" {"booking": id};
        Rejection::BookingNotFound => 404 "do_not_retry" {};
        Rejection::AlreadyCancelled(vec![UnitNo(2)]) => 409 "ask_state"
            {"units": [{"area": "floor", "place": "floor.1"}]};
        Rejection::BookingNotConfirmed => 409 "ask_state" {};
        Rejection::CancelClosed(at) => 409 "do_not_retry" {"cancel_until": zero};
        Rejection::IdempotencyKeyMissing => 400 "do_not_retry" {};
        Rejection::IdempotencyKeyReused => 422 "do_not_retry" {};
        Rejection::Overloaded => 503 "retry_after" {};
        Rejection::ReadOnly => 503 "retry_after" {};
        Rejection::OutcomeUnknown => 503 "retry_after" {};
        Rejection::MemoryMismatch => 503 "retry_after" {};
        Rejection::ShuttingDown => 503 "retry_after" {};
    }
}

async fn told(problem: Problem) -> (Response, Value) {
    let (parts, body) = problem.into_response().into_parts();
    let body = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    (Response::from_parts(parts, Body::empty()), body)
}

#[tokio::test]
async fn every_rejection_has_its_row() {
    let chart = chart();
    for (rejection, status, advice, extras) in table() {
        let (answer, body) = told(Problem::rejected(&rejection, Some(&chart))).await;
        let code = rejection.code();
        assert_eq!(answer.status(), status, "{code}");
        let head = ["type", "title", "status", "detail", "code", "advice"];
        let mut rest = body.as_object().unwrap().clone();
        rest.retain(|name, _| !head.contains(&name.as_str()));
        assert_eq!(Value::Object(rest), extras, "{code}");
        assert_eq!(
            (&body["code"], &body["advice"]),
            (&json!(code), &json!(advice))
        );
        assert_eq!(
            body["type"],
            format!("/problems/{}", code.replace('_', "-"))
        );
        assert_eq!(body["status"], status);
        assert!(
            head.iter().all(|name| !body[name].is_null()),
            "{code}: {body}"
        );
        let waits = [429, 503].contains(&status);
        assert_eq!(
            answer.headers().contains_key("retry-after"),
            waits,
            "{code}"
        );
    }
}

#[tokio::test]
async fn a_rejection_without_a_chart_is_still_a_problem() {
    for (rejection, status, ..) in table() {
        let (answer, body) = told(rejection.into()).await;
        assert_eq!(
            (answer.status().as_u16(), &body["status"]),
            (status, &json!(status))
        );
    }
}

#[tokio::test]
async fn what_the_server_itself_refuses_has_a_row_too() {
    let rejected: BTreeSet<_> = table()
        .iter()
        .map(|(rejection, ..)| rejection.code())
        .collect();
    assert_eq!(rejected, REJECTION_CODES.iter().copied().collect());
    let own: Vec<_> = kinds::ALL
        .iter()
        .filter(|kind| !rejected.contains(kind.code))
        .collect();
    let expected = [
        ("unauthenticated", 401, "do_not_retry"),
        ("forbidden", 403, "do_not_retry"),
        ("not_found", 404, "do_not_retry"),
        ("method_not_allowed", 405, "do_not_retry"),
        ("request_timeout", 408, "retry_after"),
        ("payment_refused", 409, "do_not_retry"),
        ("nothing_paid", 409, "do_not_retry"),
        ("last_admin_key", 409, "do_not_retry"),
        ("lease_held", 409, "do_not_retry"),
        ("lease_lost", 409, "do_not_retry"),
        ("body_too_large", 413, "do_not_retry"),
        ("unsupported_media_type", 415, "do_not_retry"),
        ("rate_limited", 429, "retry_after"),
        ("internal_error", 500, "do_not_retry"),
        ("payment_unavailable", 503, "retry_after"),
        ("leases_unavailable", 503, "retry_after"),
    ];
    assert_eq!(own.len(), expected.len());
    for (kind, (code, status, advice)) in own.into_iter().zip(expected) {
        let (answer, body) = told(Problem::new(kind)).await;
        assert_eq!((kind.code, answer.status().as_u16()), (code, status));
        assert_eq!(
            (&body["code"], &body["advice"]),
            (&json!(code), &json!(advice))
        );
    }
}

#[tokio::test]
async fn a_ledger_that_tells_nothing_now_is_to_be_asked_again() {
    let cause = || "connection to 10.0.0.7 refused".to_owned();
    let cases = [
        (ReadError::Away(cause()), 503, "read_only", "retry_after"),
        (ReadError::Full(cause()), 503, "overloaded", "retry_after"),
        (
            ReadError::Failed(cause()),
            500,
            "internal_error",
            "ask_state",
        ),
    ];
    for (error, status, code, advice) in cases {
        let (answer, body) = told(EngineError::Read(error).into()).await;
        assert_eq!(answer.status(), status, "{code}");
        assert_eq!(
            (&body["code"], &body["advice"]),
            (&json!(code), &json!(advice))
        );
        let waits = answer.headers().contains_key("retry-after");
        assert_eq!(waits, status == 503, "{code}");
        assert!(!body.to_string().contains("10.0.0.7"), "{body}");
    }
}

#[tokio::test]
async fn a_failure_tells_the_caller_nothing_of_its_cause() {
    let cause = "disk /dev/sda1: No space left";
    let (answer, body) = told(Problem::internal(&cause)).await;
    assert_eq!(
        (answer.status().as_u16(), &body["advice"]),
        (500, &json!("ask_state"))
    );
    let (_, other) = told(Problem::internal(&"something else")).await;
    assert_eq!(body, other);
    assert!(!body.to_string().contains("disk"));
}
