//! The tests of the workspace as a whole. Those of a crate live in that crate.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests: a panic is the failure that is wanted"
)]

mod servers;
mod tidy;
