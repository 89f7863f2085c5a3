//! Tests of the lease library from outside.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which panic when the machine is not as it must be"
)]
#![expect(
    clippy::indexing_slicing,
    reason = "an answer that is missing fails the test"
)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what else comes is shown and fails"
)]

#[macro_use]
mod pass_on;

#[cfg(feature = "redis")]
mod awake;
mod conformance;
mod epochs;
#[cfg(feature = "test-kit")]
mod facade;
#[cfg(all(
    feature = "cluster",
    feature = "postgres",
    feature = "redlock",
    feature = "test-kit"
))]
mod faults;
#[cfg(all(
    feature = "cluster",
    feature = "postgres",
    feature = "redlock",
    feature = "test-kit"
))]
mod history;
mod holding;
#[cfg(feature = "metrics")]
mod metrics;
mod model;
mod names;
#[cfg(feature = "redis")]
mod peer;
#[cfg(all(feature = "redis", feature = "test-kit", debug_assertions))]
mod planting;
#[cfg(feature = "postgres")]
mod postgres;
mod readme;
#[cfg(feature = "redis")]
mod redis;
#[cfg(all(feature = "redlock", feature = "test-kit"))]
mod redlock;
mod requests;
#[cfg(any(feature = "redis", feature = "postgres", feature = "test-kit"))]
mod secrets;
#[cfg(feature = "redis")]
mod table;
#[cfg(any(feature = "redis", feature = "test-kit"))]
mod trace_log;
