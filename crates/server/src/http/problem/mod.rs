//! Refusals as `application/problem+json` (RFC 9457): the one mapping from the rejections of `core`
//! to HTTP. What is said here is for the caller; what the log needs is written where it happens.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use soldonce_core::{Advice, Budget, Chart, Rejection};
use soldonce_engine::EngineError;
use soldonce_engine::reply::Rfc3339;

use super::conflicts::{Unavailability, Units};
use super::kinds::{self, Kind};

/// What a handler gives.
pub(super) type Handled = Result<Response, Problem>;

/// A refusal on its way to the caller.
#[derive(Debug)]
pub(super) struct Problem {
    kind: &'static Kind,
    detail: Cow<'static, str>,
    advice: Advice,
    /// Further members as JSON, each after a comma.
    extras: Vec<u8>,
    retry_after: Option<RetryAfter>,
}

/// Seconds to wait.
#[derive(Clone, Copy, Debug)]
struct RetryAfter(u32);

const SOON: RetryAfter = RetryAfter(1);

impl Problem {
    /// A problem of this kind, in the words of its table.
    pub(super) fn new(kind: &'static Kind) -> Self {
        Self::detailed(kind, kind.happened)
    }

    /// A problem of this kind, in words of its own.
    pub(super) fn detailed(kind: &'static Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        let busy = matches!(
            kind.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        );
        Self {
            kind,
            detail: detail.into(),
            advice: if busy {
                Advice::RetryAfter
            } else {
                Advice::DoNotRetry
            },
            extras: Vec::new(),
            retry_after: busy.then_some(SOON),
        }
    }

    /// The request says something at `place` that cannot be.
    pub(super) fn invalid(place: &str, reason: impl std::fmt::Display) -> Self {
        Self::detailed(&kinds::INVALID_REQUEST, format!("{place}: {reason}"))
    }

    /// Why is the operator's to read; the caller learns nothing of it.
    pub(super) fn internal(why: &dyn std::fmt::Display) -> Self {
        tracing::error!(error = %why, "a request failed");
        let mut problem = Self::new(&kinds::INTERNAL_ERROR);
        problem.advice = Advice::AskState;
        problem
    }

    /// An engine's error, with its units named by `chart`.
    pub(super) fn of(error: &EngineError, chart: Option<&Chart>) -> Self {
        match error {
            EngineError::Rejected(rejection) => Self::rejected(rejection, chart),
            EngineError::Read(error) => Self::internal(error),
        }
    }

    /// A rejection, with its units named by `chart`.
    pub(super) fn rejected(rejection: &Rejection, chart: Option<&Chart>) -> Self {
        let problem = Self::detailed(kind_of(rejection), detail_of(rejection));
        let problem = Self {
            advice: rejection.advice(),
            ..problem
        };
        match rejection {
            Rejection::UnitUnavailable(refusal) => match chart {
                Some(chart) => problem.with_all(&Unavailability::new(chart, refusal)),
                None => problem.with("seq", &refusal.seq.0),
            },
            Rejection::UnknownUnit(names) => problem.with("unknown", names),
            Rejection::NotOnSale {
                opens_at: Some(opens_at),
            } => problem.with("sale_opens_at", &Rfc3339(*opens_at)),
            Rejection::BudgetExceeded {
                budget,
                limit,
                used,
            } => problem
                .with("budget", &budget_word(*budget))
                .with("limit", limit)
                .with("used", used),
            Rejection::AdjacencyRefused(units) => problem.with_units("orphans", chart, units),
            Rejection::AlreadyCancelled(units) => problem.with_units("units", chart, units),
            Rejection::TooManyUnits { limit } => problem.with("limit", limit),
            Rejection::HoldConsumed(booking) | Rejection::PaymentInProgress(booking) => {
                problem.with("booking", &booking.to_string())
            }
            Rejection::HoldRevoked(reason) => problem.with("reason", &reason.as_str()),
            Rejection::CapReached(at) => problem.with("max_expires_at", &Rfc3339(*at)),
            Rejection::StaleFence(fence) => problem.with("fence", &fence.0),
            Rejection::CancelClosed(at) => problem.with("cancel_until", &Rfc3339(*at)),
            Rejection::IdempotencyInFlight => Self {
                retry_after: Some(SOON),
                ..problem
            },
            Rejection::Invalid(_)
            | Rejection::EventNotFound
            | Rejection::EventExists
            | Rejection::NotOnSale { opens_at: None }
            | Rejection::HoldNotFound
            | Rejection::HoldExpired
            | Rejection::HoldReleased
            | Rejection::PaymentRequired
            | Rejection::BookingNotFound
            | Rejection::BookingNotConfirmed
            | Rejection::IdempotencyKeyMissing
            | Rejection::IdempotencyKeyReused
            | Rejection::Overloaded
            | Rejection::ReadOnly => problem,
        }
    }

    /// The same with one more member.
    pub(super) fn with(mut self, name: &str, value: &impl Serialize) -> Self {
        self.extras.extend_from_slice(b",\"");
        self.extras.extend_from_slice(name.as_bytes());
        self.extras.extend_from_slice(b"\":");
        append(&mut self.extras, value);
        self
    }

    /// The same with the members of an object.
    fn with_all(mut self, members: &impl Serialize) -> Self {
        let from = self.extras.len();
        append(&mut self.extras, members);
        self.extras.pop();
        if let Some(brace) = self.extras.get_mut(from) {
            *brace = b',';
        }
        self
    }

    fn with_units(
        self,
        name: &str,
        chart: Option<&Chart>,
        units: &[soldonce_core::UnitNo],
    ) -> Self {
        match chart {
            Some(chart) => self.with(name, &Units { chart, units }),
            None => self,
        }
    }

    /// The answer.
    pub(super) fn into_response(self) -> Response {
        let head = Head {
            r#type: self.kind.page,
            title: self.kind.title,
            status: self.kind.status.as_u16(),
            detail: &self.detail,
            code: self.kind.code,
            advice: self.advice.as_str(),
        };
        let mut body = Vec::with_capacity(HEAD_BYTES + self.detail.len() + self.extras.len());
        append(&mut body, &head);
        body.pop();
        body.extend_from_slice(&self.extras);
        body.push(b'}');
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.kind.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        if let Some(RetryAfter(seconds)) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.kind.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, BEARER);
        }
        if self.kind.status == StatusCode::REQUEST_TIMEOUT {
            headers.insert(header::CONNECTION, CLOSE);
        }
        response
    }

    /// Its code, for tests and the log.
    pub(super) fn code(&self) -> &'static str {
        self.kind.code
    }
}

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const BEARER: HeaderValue = HeaderValue::from_static("Bearer");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
/// Room for the members that every problem has, beside its detail.
const HEAD_BYTES: usize = 256;

#[derive(Serialize)]
struct Head<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'static str,
    advice: &'static str,
}

fn append(to: &mut Vec<u8>, value: &impl Serialize) {
    // Writing to memory fails for maps without text keys alone, and there are none.
    if serde_json::to_writer(&mut *to, value).is_err() {
        to.extend_from_slice(b"null");
    }
}

fn budget_word(budget: Budget) -> &'static str {
    match budget {
        Budget::Held => "held",
        Budget::Bought => "bought",
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        Self::rejected(&rejection, None)
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        Self::of(&error, None)
    }
}

/// The status and the words of each rejection: the table of api.md 2.
fn kind_of(rejection: &Rejection) -> &'static Kind {
    match rejection {
        Rejection::Invalid(_) => &kinds::INVALID_REQUEST,
        Rejection::UnitUnavailable(_) => &kinds::UNIT_UNAVAILABLE,
        Rejection::UnknownUnit(_) => &kinds::UNKNOWN_UNIT,
        Rejection::EventNotFound => &kinds::EVENT_NOT_FOUND,
        Rejection::EventExists => &kinds::EVENT_EXISTS,
        Rejection::NotOnSale { .. } => &kinds::NOT_ON_SALE,
        Rejection::BudgetExceeded { .. } => &kinds::BUDGET_EXCEEDED,
        Rejection::AdjacencyRefused(_) => &kinds::ADJACENCY_REFUSED,
        Rejection::TooManyUnits { .. } => &kinds::TOO_MANY_UNITS,
        Rejection::HoldNotFound => &kinds::HOLD_NOT_FOUND,
        Rejection::HoldExpired => &kinds::HOLD_EXPIRED,
        Rejection::HoldReleased => &kinds::HOLD_RELEASED,
        Rejection::HoldConsumed(_) => &kinds::HOLD_CONSUMED,
        Rejection::HoldRevoked(_) => &kinds::HOLD_REVOKED,
        Rejection::CapReached(_) => &kinds::CAP_REACHED,
        Rejection::StaleFence(_) => &kinds::STALE_FENCE,
        Rejection::PaymentInProgress(_) => &kinds::PAYMENT_IN_PROGRESS,
        Rejection::PaymentRequired => &kinds::PAYMENT_REQUIRED,
        Rejection::BookingNotFound => &kinds::BOOKING_NOT_FOUND,
        Rejection::AlreadyCancelled(_) => &kinds::ALREADY_CANCELLED,
        Rejection::BookingNotConfirmed => &kinds::BOOKING_NOT_CONFIRMED,
        Rejection::CancelClosed(_) => &kinds::CANCEL_CLOSED,
        Rejection::IdempotencyKeyMissing => &kinds::IDEMPOTENCY_KEY_MISSING,
        Rejection::IdempotencyInFlight => &kinds::IDEMPOTENCY_IN_FLIGHT,
        Rejection::IdempotencyKeyReused => &kinds::IDEMPOTENCY_KEY_REUSED,
        Rejection::Overloaded => &kinds::OVERLOADED,
        Rejection::ReadOnly => &kinds::READ_ONLY,
    }
}

/// What the caller is told. Nearly always the words of the table: they cost nothing.
fn detail_of(rejection: &Rejection) -> Cow<'static, str> {
    if let Rejection::Invalid(invalid) = rejection {
        return Cow::Owned(invalid.to_string());
    }
    if let Rejection::TooManyUnits { limit } = rejection {
        return Cow::Owned(format!("one hold may have at most {limit} units"));
    }
    Cow::Borrowed(kind_of(rejection).happened)
}

#[cfg(test)]
mod tests;
