//! Tests of TLS with real servers and certificates of a test's own authority.

#![expect(clippy::unwrap_used, reason = "helpers outside #[test] functions")]

mod listener;
mod postgres;
