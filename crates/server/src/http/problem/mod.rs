//! Refusals as `application/problem+json` (RFC 9457): the one mapping from the rejections of `core`
//! to HTTP. What is said here is for the caller; what the log needs is written where it happens.

mod retry;

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use soldonce_core::{Advice, Chart, Member, Rejection, Unavailable};
use soldonce_engine::EngineError;
use soldonce_engine::ledger::ReadError;
use soldonce_engine::payment::ProviderError;
use soldonce_engine::reply::Rfc3339;

use super::kinds::{self, Kind};
use super::{conflicts, response};

pub(super) use self::retry::whole_seconds;

use self::retry::asked_pause;

pub(super) type Handled = Result<Response, Problem>;

/// A refusal on its way to the caller.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) kind: &'static Kind,
    /// What is wrong with this request; None is what the table says.
    detail: Option<String>,
    advice: Advice,
    /// Further members as JSON, each after a comma.
    extras: Vec<u8>,
    pub(super) retry_after: Option<Duration>,
    /// Further header fields.
    headers: Option<Box<HeaderMap>>,
}

impl Problem {
    /// Creates a problem of this kind, in the words of its table.
    pub(super) fn new(kind: &'static Kind) -> Self {
        let busy = matches!(
            kind.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        );
        Self {
            kind,
            detail: None,
            advice: if busy || kind.status == StatusCode::REQUEST_TIMEOUT {
                Advice::RetryAfter
            } else {
                Advice::DoNotRetry
            },
            extras: Vec::new(),
            retry_after: busy.then_some(SOON),
            headers: None,
        }
    }

    /// Creates a problem of this kind, in words of its own.
    pub(super) fn detailed(kind: &'static Kind, detail: impl Into<String>) -> Self {
        Self {
            detail: Some(detail.into()),
            ..Self::new(kind)
        }
    }

    /// Creates the problem of a request that says something at `place` that cannot be.
    pub(super) fn invalid(place: &str, reason: impl std::fmt::Display) -> Self {
        Self::detailed(&kinds::INVALID_REQUEST, format!("{place}: {reason}"))
    }

    /// Creates the problem of a caller that asks too often: the next request is let in after
    /// `retry_in`.
    pub(super) fn too_often(detail: &'static str, retry_in: Duration) -> Self {
        let millis = u64::try_from(retry_in.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
        let mut problem = Self::detailed(&kinds::RATE_LIMITED, detail);
        problem.retry_after = Some(retry_in);
        problem.with("retry_after_ms", &millis)
    }

    /// Logs `why`, which is for the operator; the caller learns nothing of it.
    pub(super) fn internal(why: &dyn std::fmt::Display) -> Self {
        tracing::error!(error = %why, "a request failed");
        Self::unknown_outcome()
    }

    /// Creates the problem of a request that failed, perhaps after it took effect. The reason must
    /// be in the log already.
    pub(super) fn unknown_outcome() -> Self {
        let mut problem = Self::new(&kinds::INTERNAL_ERROR);
        problem.advice = Advice::AskState;
        problem
    }

    /// Converts an engine's error, with its units named by `chart`.
    pub(super) fn of(error: &EngineError, chart: Option<&Chart>) -> Self {
        match error {
            EngineError::Rejected(rejection) => Self::rejected(rejection, chart),
            EngineError::Read(error) => Self::unread(error),
            EngineError::Provider(error) => Self::provider(error),
        }
    }

    /// Converts a failed read. That the ledger is away is in the log once, not for each request.
    fn unread(error: &ReadError) -> Self {
        let (kind, detail) = match error {
            ReadError::Away(_) => (
                &kinds::READ_ONLY,
                "The ledger cannot be reached at present.",
            ),
            ReadError::Full(_) => (&kinds::OVERLOADED, "Too much waits for the ledger already."),
            ReadError::Failed(_) => return Self::internal(error),
        };
        tracing::debug!(%error, "a request could not be answered now");
        Self::detailed(kind, detail)
    }

    /// Converts an error of the provider. What it says is logged: it is for the operator.
    fn provider(error: &ProviderError) -> Self {
        tracing::warn!(%error, "the payment provider did not do its part");
        match error {
            ProviderError::Declined { .. } | ProviderError::Refused { .. } => Self {
                advice: Advice::AskState,
                ..Self::new(&kinds::PAYMENT_REFUSED)
            },
            ProviderError::Unknown(_)
            | ProviderError::Busy { .. }
            | ProviderError::Misconfigured(_) => Self {
                advice: Advice::RetryAfter,
                retry_after: Some(asked_pause(error).unwrap_or(SOON)),
                ..Self::new(&kinds::PAYMENT_UNAVAILABLE)
            },
        }
    }

    /// Converts a rejection as `core` declares it, with its units named by `chart`.
    pub(super) fn rejected(rejection: &Rejection, chart: Option<&Chart>) -> Self {
        let problem = Self {
            detail: detail_of(rejection),
            advice: rejection.advice(),
            ..Self::new(kinds::of_rejection(rejection))
        };
        let members = rejection.members().into_iter();
        members.fold(problem, |problem, (name, member)| match member {
            Member::Number(number) => problem.with(name, &number),
            Member::Text(text) => problem.with(name, &text),
            Member::Time(at) => problem.with(name, &Rfc3339(at)),
            Member::Booking(booking) => problem.with(name, &booking.to_string()),
            Member::Names(names) => problem.with(name, &names),
            Member::Units(units) => problem.with_units(name, chart, units),
            Member::Unavailable(refusal) => match chart {
                Some(chart) => problem.with_conflicts(chart, refusal),
                None => problem.with("seq", &refusal.seq.0),
            },
        })
    }

    /// Replaces the detail with words that fit this request better.
    pub(super) fn saying(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Replaces the advice.
    pub(super) const fn advising(mut self, advice: Advice) -> Self {
        self.advice = advice;
        self
    }

    /// Sets further header fields.
    pub(super) fn telling(mut self, headers: HeaderMap) -> Self {
        self.headers = Some(Box::new(headers));
        self
    }

    /// Adds one more member.
    pub(super) fn with(mut self, name: &str, value: &impl Serialize) -> Self {
        self.extras.extend_from_slice(b",\"");
        self.extras.extend_from_slice(name.as_bytes());
        self.extras.extend_from_slice(b"\":");
        append(&mut self.extras, value);
        self
    }

    fn with_conflicts(mut self, chart: &Chart, refusal: &Unavailable) -> Self {
        self.extras.reserve(EXTRAS_BYTES);
        conflicts::write(&mut self.extras, chart, refusal);
        self
    }

    fn with_units(
        mut self,
        name: &str,
        chart: Option<&Chart>,
        units: &[soldonce_core::UnitNo],
    ) -> Self {
        if let Some(chart) = chart {
            self.extras.extend_from_slice(b",\"");
            self.extras.extend_from_slice(name.as_bytes());
            self.extras.extend_from_slice(b"\":");
            conflicts::write_units(&mut self.extras, chart, units);
        }
        self
    }

    pub(super) fn into_response(self) -> Response {
        let (head, happened_json) = (self.kind.head, self.kind.happened_json);
        let detail = self.detail.as_deref();
        let bytes = head.len() + self.extras.len() + MARKS_BYTES;
        let mut body = Vec::with_capacity(bytes + detail.map_or(happened_json.len(), str::len));
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(self.advice.as_str().as_bytes());
        body.extend_from_slice(b"\",\"detail\":");
        match detail {
            Some(detail) => append(&mut body, &detail),
            None => body.extend_from_slice(happened_json.as_bytes()),
        }
        body.extend_from_slice(&self.extras);
        body.push(b'}');
        self.into_response_with(Body::from(body))
    }

    /// Builds its answer with this body, which says the same in another form than JSON.
    pub(super) fn into_response_with(self, body: Body) -> Response {
        let mut response = response::bare(self.kind.status, body);
        let headers = response.headers_mut();
        headers.extend(self.headers.into_iter().flat_map(|more| *more));
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        if let Some(pause) = self.retry_after {
            headers.insert(header::RETRY_AFTER, whole_seconds(pause).into());
        }
        if self.kind.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, BEARER);
        }
        if self.kind.status == StatusCode::REQUEST_TIMEOUT {
            headers.insert(header::CONNECTION, CLOSE);
        }
        response
    }

    /// Returns the members that every problem has, but for its status; `detail` is the last.
    pub(super) fn texts(&self) -> [(&'static str, &str); 5] {
        let kind = self.kind;
        [
            ("type", kind.page),
            ("title", kind.title),
            ("code", kind.code),
            ("advice", self.advice.as_str()),
            ("detail", self.detail.as_deref().unwrap_or(kind.happened)),
        ]
    }

    /// Returns the further members as an object.
    pub(super) fn extras(&self) -> Vec<u8> {
        let members = self.extras.get(1..).unwrap_or_default();
        [&b"{"[..], members, b"}"].concat()
    }

    /// Returns its code, for tests and the log.
    pub(super) fn code(&self) -> &'static str {
        self.kind.code
    }
}

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const BEARER: HeaderValue = HeaderValue::from_static("Bearer");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
/// The wait that a busy server asks for.
const SOON: Duration = Duration::from_secs(1);
/// Room for the advice and the marks around the members.
const MARKS_BYTES: usize = 48;
/// Room for a few conflicts and alternatives.
const EXTRAS_BYTES: usize = 384;

fn append(to: &mut Vec<u8>, value: &impl Serialize) {
    // Writing to memory fails for maps without text keys alone, and there are none.
    if serde_json::to_writer(&mut *to, value).is_err() {
        to.extend_from_slice(b"null");
    }
}

/// Says what is wrong with this request, where the words of the kind do not.
fn detail_of(rejection: &Rejection) -> Option<String> {
    if let Rejection::Invalid(invalid) = rejection {
        return Some(invalid.to_string());
    }
    if let Rejection::TooManyUnits { limit } = rejection {
        return Some(format!("one hold may have at most {limit} units"));
    }
    None
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

#[cfg(test)]
mod tests;
