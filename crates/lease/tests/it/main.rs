//! Tests of the lease library from outside.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which panic when the machine is not as it must be"
)]

mod epochs;
mod folder;
