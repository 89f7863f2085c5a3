//! Tests of the server through its sockets, and of its routes without any.

#![expect(clippy::unwrap_used, reason = "helpers outside #[test] functions")]
#![expect(
    clippy::excessive_nesting,
    reason = "a test is a loop over stores around a loop over cases"
)]
#![expect(
    clippy::indexing_slicing,
    reason = "JSON that is not there is null, and fails the test"
)]
#![expect(clippy::similar_names, reason = "what was held is a hold")]

mod address_holds;
mod database;
mod harness;
mod over_grpc;
mod variant;

mod accept;
mod accept_crowds;
mod accept_http2;
mod accept_shares;
mod accept_stalls;
mod accept_tls;
mod behind_proxies;
mod early_refusals;
mod frames;

mod access;
mod bookings;
mod bounds;
mod callers;
mod clocks;
mod coded;
mod dropped;
mod events;
mod feed;
mod grpc;
mod holds;
mod k6;
mod lease_streams;
mod leases;
mod limits;
mod limits_shared;
mod lists;
mod logs;
mod openapi;
mod pages;
mod payments;
mod polling;
mod races;
mod refusals;
mod served;
mod test_payments;
mod webhooks;
