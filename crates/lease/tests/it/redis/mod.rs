//! The Redis backend through its contract, on private servers that are flushed, stopped and killed.

mod asks;
mod batches;
#[cfg(feature = "cluster")]
mod cluster;
mod conformance;
mod doctor;
mod epochs;
mod facade;
mod grants;
mod in_place;
mod left_alone;
mod losses;
#[cfg(all(feature = "test-kit", debug_assertions))]
mod planted;
mod queue;
mod refusals;
mod site;
mod slow;
mod spans;
#[cfg(feature = "tls")]
mod tls;
mod unknown;
#[cfg(target_os = "linux")]
mod waiters;
mod wake;
