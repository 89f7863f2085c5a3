//! The id of a request: the caller's own if it is legal, else one of ours. It goes back in the
//! answer, into the log, and into the audit row of what the request did.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use soldonce_engine::Ids;

use crate::limits::REQUEST_ID_BYTES_MAX;

/// The header that carries it, both ways.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Makes the ids of requests: random at the start, counted from then on.
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

    /// Returns the id in these headers if it is legal, else a new one.
    pub(super) fn of(&self, headers: &HeaderMap) -> Arc<str> {
        match headers.get(REQUEST_ID).and_then(legal) {
            Some(theirs) => theirs.into(),
            None => self.mint(),
        }
    }

    fn mint(&self) -> Arc<str> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut text = String::with_capacity(self.prefix.len() + MOST_DIGITS);
        text.push_str(&self.prefix);
        // Without leading zeros; the formatter would cost more than all the rest.
        let digits = (64 - (number | 1).leading_zeros()).div_ceil(4);
        for digit in (0..digits).rev() {
            let nibble = u32::try_from((number >> (4 * digit)) & 15).unwrap_or(0);
            text.push(char::from_digit(nibble, 16).unwrap_or('0'));
        }
        text.into()
    }
}

/// Most hexadecimal digits of a number.
const MOST_DIGITS: usize = 16;

/// Accepts `[A-Za-z0-9._-]{1,64}`: nothing that could break a line of the log.
fn legal(value: &HeaderValue) -> Option<&str> {
    let text = value.to_str().ok()?;
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    ((1..=REQUEST_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_legal)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_hexadecimal_without_leading_zeros() {
        let ids = RequestIds {
            prefix: "req_x-".to_owned(),
            next: AtomicU64::new(0),
        };
        let minted: Vec<_> = (0..18).map(|_| ids.mint()).collect();
        let expected: Vec<_> = (0..18).map(|number| format!("req_x-{number:x}")).collect();
        assert!(
            minted.iter().zip(&expected).all(|(a, b)| **a == **b),
            "{minted:?}"
        );
        ids.next.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(&*ids.mint(), "req_x-ffffffffffffffff");
    }
}
