//! The id of a request: the caller's own if it is legal, else one of ours. It goes back in the
//! answer, into the log, and into the audit beside what the request did.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use soldonce_engine::Ids;

use crate::limits::REQUEST_ID_BYTES_MAX;

/// The header that carries it, both ways.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Where ids of requests come from: random once, counted from then on.
#[derive(Debug)]
pub(super) struct RequestIds {
    prefix: String,
    next: AtomicU64,
}

impl RequestIds {
    pub(super) fn new(ids: &Ids) -> Self {
        let text = soldonce_core::encode_128(ids.bits());
        let random = text.get(text.len().saturating_sub(12)..).unwrap_or(&text);
        Self {
            prefix: format!("req_{random}-"),
            next: AtomicU64::new(1),
        }
    }

    /// The id of a request with these headers.
    pub(super) fn of(&self, headers: &HeaderMap) -> Arc<str> {
        match headers.get(REQUEST_ID).and_then(legal) {
            Some(theirs) => theirs.into(),
            None => self.mint(),
        }
    }

    fn mint(&self) -> Arc<str> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{}{number:x}", self.prefix).into()
    }
}

/// `[A-Za-z0-9._-]{1,64}`: nothing that could break a line of the log.
fn legal(value: &HeaderValue) -> Option<&str> {
    let text = value.to_str().ok()?;
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    ((1..=REQUEST_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_legal)).then_some(text)
}
