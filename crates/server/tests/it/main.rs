//! Tests of the server through its sockets, and of its routes without any.

#![expect(clippy::unwrap_used, reason = "helpers outside #[test] functions")]

mod harness;
mod log;

mod accept;
mod accept_http2;

mod access;
mod bookings;
mod bounds;
mod callers;
mod events;
mod feed;
mod holds;
mod logs;
mod openapi;
mod pages;
mod races;
mod served;
