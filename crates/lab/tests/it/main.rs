//! The lab as a user runs it.

#![expect(clippy::unwrap_used, reason = "helpers outside #[test] functions")]

mod bench;
mod peer;
mod race;
