//! fake-stripe by its rules, over its socket.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: a panic is the failure that is wanted"
)]

mod client;

mod access;
mod faults;
mod intents;
mod kept;
mod keys;
mod notices;
mod refunds;
mod sdks;
