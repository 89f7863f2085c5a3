//! Tests of the `soldonce` binary as a user runs it.

#![expect(clippy::unwrap_used, reason = "helpers outside #[test] functions")]

mod backup;
mod browser;
mod clock;
mod crash;
mod crowd;
mod engines;
mod examples;
mod folders;
mod generated;
mod lease_backends;
mod lease_run;
mod lease_said;
mod lease_terminal;
mod migrate;
mod money;
mod operate;
mod packages;
mod program;
mod said;
mod schema;
mod servers;
mod shop;
mod siege;
mod store;
mod tls;
mod traces;
mod update;
mod watch;
mod webhooks;
