//! Refusals as statuses: the one mapping from problems to the canonical codes of gRPC (docs/grpc.md has the table).

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use axum::body::to_bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use prost_reflect::prost::Message;
use prost_reflect::prost_types::{Any, Duration};
use serde_json::value::RawValue;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tonic_types::pb::{ErrorInfo, RetryInfo, Status as Details};

use super::shape::Shape;
use super::{message, pool};
use crate::http::answer::IDEMPOTENCY_REPLAYED;
use crate::http::json::Str;
use crate::http::kinds;
use crate::http::rates::{RATE_LIMIT, RATE_LIMIT_POLICY};
use crate::http::request_id::REQUEST_ID;

const DOMAIN: &str = "soldonce";
const PROBLEM: &str = "soldonce.v1.Problem";

/// The members of a problem, each as its JSON.
type Members<'a> = BTreeMap<&'a str, &'a RawValue>;

/// The members of a problem that the status says by itself.
const SAID: [&str; 4] = ["code", "title", "status", "detail"];

pub(super) async fn of(response: Response) -> Status {
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let status = of_problem(parts.status, &parts.headers, &body);
    status.unwrap_or_else(|| Status::internal("the answer cannot be written"))
}

fn of_problem(http: StatusCode, headers: &HeaderMap, problem: &[u8]) -> Option<Status> {
    let shape = shape()?;
    let message = message::written(shape, problem).ok()?;
    let members: Members<'_> = serde_json::from_slice(problem).ok()?;
    let text = |name: &str| {
        let text: Str<'_> = serde_json::from_str(members.get(name)?.get()).ok()?;
        Some(text.0.into_owned())
    };
    let (reason, said) = (text("code")?, text("detail")?);
    let code = code(http, &reason);
    let info = ErrorInfo {
        metadata: metadata_of(shape, &members),
        reason,
        domain: DOMAIN.to_owned(),
    };
    let retry = wait(headers, &members).map(|retry_delay| RetryInfo {
        retry_delay: Some(retry_delay),
    });
    let details = [
        Some(any("google.rpc.ErrorInfo", info.encode_to_vec())),
        retry.map(|retry| any("google.rpc.RetryInfo", retry.encode_to_vec())),
        Some(any(PROBLEM, message.into())),
    ];
    let details = Details {
        code: code.into(),
        message: said.clone(),
        details: details.into_iter().flatten().collect(),
    };
    let details = details.encode_to_vec().into();
    let told = metadata(headers);
    Some(Status::with_details_and_metadata(code, said, details, told))
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

fn any(name: &str, value: Vec<u8>) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{name}"),
        value,
    }
}

/// Collects the members that are one value each, as text.
fn metadata_of(shape: &Shape, members: &Members<'_>) -> HashMap<String, String> {
    let further = members.iter().filter(|(name, _)| !SAID.contains(name));
    let known = further.filter(|(name, _)| shape.field(name).is_some());
    let texts = known.filter_map(|(name, json)| {
        let json = json.get();
        let text = match json.as_bytes().first()? {
            b'"' => serde_json::from_str(json).ok()?,
            b'-' | b'0'..=b'9' => json.to_owned(),
            _ => return None,
        };
        Some(((*name).to_owned(), text))
    });
    texts.collect()
}

/// Reads how long to wait before the next call, if the problem says so.
fn wait(headers: &HeaderMap, members: &Members<'_>) -> Option<Duration> {
    let millis = members.get("retry_after_ms");
    let millis: Option<u64> = millis.and_then(|json| json.get().parse().ok());
    let pause = if let Some(millis) = millis {
        std::time::Duration::from_millis(millis)
    } else {
        let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        std::time::Duration::from_secs(seconds.parse().ok()?)
    };
    Duration::try_from(pause).ok()
}

/// Returns what an answer says apart from its body.
pub(super) fn metadata(headers: &HeaderMap) -> MetadataMap {
    let mut said = HeaderMap::new();
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
}
