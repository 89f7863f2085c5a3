//! Tests of the server through its sockets.

#![expect(clippy::unwrap_used, reason = "helpers outside #[test] functions")]

mod accept;
mod accept_http2;
