//! Refusals as statuses: the one mapping from problems to the canonical codes of gRPC (docs/grpc.md has the table).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use prost_reflect::prost::encoding;
use prost_reflect::prost_types::Duration;
use serde_json::value::RawValue;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use super::pool;
use super::shape::Shape;
use super::write::{self, MESSAGE_BYTES, put, put_message};
use crate::http::answer::IDEMPOTENCY_REPLAYED;
use crate::http::kinds;
use crate::http::problem::{Problem, whole_seconds};
use crate::http::rates::{RATE_LIMIT, RATE_LIMIT_POLICY};
use crate::http::request_id::REQUEST_ID;
use crate::http::response::HEADERS;

const DOMAIN: &str = "soldonce";
const PROBLEM: &str = "soldonce.v1.Problem";

/// The members of a problem, each as its JSON.
type Members<'a> = BTreeMap<&'a str, &'a RawValue>;

/// The texts of a problem that the status says by itself.
const SAID: [&str; 3] = ["code", "title", "detail"];

/// Room for the details of a status: most fit.
const DETAILS_BYTES: usize = 1_024;

/// Builds the answer of an operation that refuses a call: without a body, with a status for [`of`].
pub(super) fn refused(problem: Problem) -> Response {
    let (status, [.., (_, detail)]) = (problem.kind.status, problem.texts());
    let code = code(status, problem.code());
    let status = if let Some(details) = details(&problem, code) {
        Status::with_details(code, detail, details.into())
    } else {
        tracing::error!(code = problem.code(), "a refusal is not as its message");
        unwritten()
    };
    let mut response = problem.into_response_with(Body::empty());
    response.extensions_mut().insert(status);
    response
}

/// Returns the status of an operation's refusal, with what the answer says apart from it.
pub(super) fn of(mut refusal: Response) -> Status {
    let status = refusal.extensions_mut().remove::<Status>();
    let mut status = status.unwrap_or_else(unwritten);
    *status.metadata_mut() = metadata(refusal.headers());
    status
}

fn unwritten() -> Status {
    Status::internal("the answer cannot be written")
}

/// Writes a refusal as a `google.rpc.Status`.
fn details(problem: &Problem, code: Code) -> Option<Vec<u8>> {
    let shape = shape()?;
    let (texts, extras) = (problem.texts(), problem.extras());
    let mut members: Members<'_> = serde_json::from_slice(&extras).ok()?;
    members.retain(|name, _| shape.field(name).is_some());
    let message = message(shape, problem, &members)?;
    let [.., (_, detail)] = texts;
    let mut to = Vec::with_capacity(DETAILS_BYTES);
    encoding::int32::encode(1, &code.into(), &mut to);
    put(&mut to, 2, detail.as_bytes());
    put_detail(&mut to, "google.rpc.ErrorInfo", |to| {
        put(to, 1, problem.code().as_bytes());
        put(to, 2, DOMAIN.as_bytes());
        put_metadata(to, &texts, &members);
    });
    if let Some(wait) = wait(problem, &members) {
        put_detail(&mut to, "google.rpc.RetryInfo", |to| {
            encoding::message::encode(1, &wait, to);
        });
    }
    put_detail(&mut to, PROBLEM, |to| to.extend_from_slice(&message));
    Some(to)
}

/// Writes a refusal as a `soldonce.v1.Problem`.
fn message(shape: &Shape, problem: &Problem, members: &Members<'_>) -> Option<Vec<u8>> {
    let mut to = Vec::with_capacity(MESSAGE_BYTES);
    for (name, text) in problem.texts() {
        put(&mut to, shape.field(name)?.number, text.as_bytes());
    }
    let status = u64::from(problem.kind.status.as_u16());
    encoding::uint64::encode(shape.field("status")?.number, &status, &mut to);
    for (name, json) in members {
        write::value(shape.field(name)?, *json, &mut to).ok()?;
    }
    Some(to)
}

/// Writes a detail: what `write` writes, as a `google.protobuf.Any` of this type.
fn put_detail(to: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    put_message(to, 3, |to| {
        put_message(to, 1, |to| {
            to.extend_from_slice(b"type.googleapis.com/");
            to.extend_from_slice(name.as_bytes());
        });
        put_message(to, 2, write);
    });
}

/// Writes the members that are one value each as text, as the metadata of a `google.rpc.ErrorInfo`.
fn put_metadata(to: &mut Vec<u8>, texts: &[(&str, &str)], members: &Members<'_>) {
    let mut put_entry = |name: &str, text: &str| {
        put_message(to, 3, |to| {
            put(to, 1, name.as_bytes());
            put(to, 2, text.as_bytes());
        });
    };
    for (name, text) in texts.iter().filter(|(name, _)| !SAID.contains(name)) {
        put_entry(name, text);
    }
    for (name, json) in members {
        if let Some(text) = text_of(json.get()) {
            put_entry(name, &text);
        }
    }
}

fn shape() -> Option<&'static Shape> {
    static SHAPE: OnceLock<Option<Shape>> = OnceLock::new();
    let shape = SHAPE.get_or_init(|| Shape::of(&pool().get_message_by_name(PROBLEM)?));
    shape.as_ref()
}

/// Maps a kind of problem to its code: mostly that of its HTTP status.
fn code(http: StatusCode, reason: &str) -> Code {
    match reason {
        _ if reason == kinds::EVENT_EXISTS.code => Code::AlreadyExists,
        // The units have another owner by now: they are to be asked for anew.
        _ if reason == kinds::STALE_FENCE.code => Code::Aborted,
        // Clients repeat what is `UNAVAILABLE` by themselves, and this may have had its effect.
        _ if reason == kinds::OUTCOME_UNKNOWN.code => Code::Unknown,
        _ => match http.as_u16() {
            400 | 413 | 415 => Code::InvalidArgument,
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            404 | 410 => Code::NotFound,
            405 => Code::Unimplemented,
            409 | 422 => Code::FailedPrecondition,
            429 => Code::ResourceExhausted,
            408 | 503 => Code::Unavailable,
            _ => Code::Internal,
        },
    }
}

/// Returns JSON of one value as text.
fn text_of(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok(),
        b'-' | b'0'..=b'9' => Some(json.to_owned()),
        _ => None,
    }
}

/// Returns how long to wait before the next call, if the problem says so.
fn wait(problem: &Problem, members: &Members<'_>) -> Option<Duration> {
    let millis = members.get("retry_after_ms");
    let millis: Option<u64> = millis.and_then(|json| json.get().parse().ok());
    let pause = if let Some(millis) = millis {
        std::time::Duration::from_millis(millis)
    } else {
        std::time::Duration::from_secs(whole_seconds(problem.retry_after?))
    };
    Duration::try_from(pause).ok()
}

/// Returns what an answer says apart from its body.
pub(super) fn metadata(headers: &HeaderMap) -> MetadataMap {
    let mut said = HeaderMap::with_capacity(HEADERS);
    for name in [
        REQUEST_ID,
        IDEMPOTENCY_REPLAYED,
        RATE_LIMIT,
        RATE_LIMIT_POLICY,
        header::RETRY_AFTER,
    ] {
        for value in headers.get_all(&name) {
            said.append(name.clone(), value.clone());
        }
    }
    MetadataMap::from_headers(said)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use prost_reflect::prost::Message;
    use tonic_types::pb::{ErrorInfo, RetryInfo, Status as Details};

    use super::*;

    /// Reads the table of docs/grpc.md.
    fn documented() -> HashMap<String, String> {
        let text = include_str!("../../../../../docs/grpc.md");
        let rows = text.lines().filter_map(|line| {
            let (code, reasons) = line.strip_prefix("| `")?.split_once("` | ")?;
            let reasons = reasons.split('|').next()?.split(", ");
            let reason = |text: &str| text.trim().trim_matches('`').to_owned();
            Some(reasons.map(move |text| (reason(text), code.to_owned())))
        });
        rows.flatten().collect()
    }

    fn name_of(code: Code) -> String {
        let name = format!("{code:?}");
        name.char_indices()
            .fold(String::new(), |mut text, (at, c)| {
                if at > 0 && c.is_ascii_uppercase() {
                    text.push('_');
                }
                text.push(c.to_ascii_uppercase());
                text
            })
    }

    #[test]
    fn every_kind_has_the_code_that_the_docs_say() {
        let documented = documented();
        for kind in kinds::ALL {
            let wanted = documented.get(kind.code).map(String::as_str);
            let given = name_of(code(kind.status, kind.code));
            assert_eq!(wanted, Some(&*given), "{}", kind.code);
        }
    }

    #[test]
    fn a_refusal_says_why_how_long_to_wait_and_all_the_rest() {
        let pause = std::time::Duration::from_millis(1_500);
        let status = of(refused(Problem::too_often("too often", pause)));
        let details = Details::decode(status.details()).unwrap();
        assert_eq!((details.code, &*details.message), (8, "too often"));
        assert_eq!(status.metadata().get("retry-after").unwrap(), "2");
        let [info, retry, problem] = &details.details[..] else {
            panic!("{details:?}");
        };
        let info = ErrorInfo::decode(&info.value[..]).unwrap();
        assert_eq!((&*info.reason, &*info.domain), ("rate_limited", "soldonce"));
        let metadata = [
            ("type", "/problems/rate-limited"),
            ("advice", "retry_after"),
            ("retry_after_ms", "1500"),
        ];
        let metadata = metadata.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(info.metadata, HashMap::from(metadata));
        let retry = RetryInfo::decode(&retry.value[..]).unwrap();
        assert_eq!(retry.retry_delay, Duration::try_from(pause).ok());
        assert_eq!(problem.type_url, "type.googleapis.com/soldonce.v1.Problem");
    }

    #[test]
    fn a_refusal_without_a_wait_has_two_details() {
        let problem = Problem::new(&kinds::TOO_MANY_UNITS).with("limit", &9);
        let status = of(refused(problem));
        let details = Details::decode(status.details()).unwrap();
        assert_eq!(details.details.len(), 2);
        let info = ErrorInfo::decode(&details.details[0].value[..]).unwrap();
        assert_eq!(info.metadata["limit"], "9");
    }
}
