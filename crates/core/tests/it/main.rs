//! The rules of Soldonce from outside: one binary, a file for each thing that is promised.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that finds nothing where something must be has failed"
)]

mod brute;
mod fixed;
mod hall;
mod world;

mod adjacency;
mod auditor;
mod cash;
mod charts;
mod corrections;
mod dropped;
mod exhaustive;
mod guards;
mod ids;
mod memory;
mod payments;
mod pick;
mod policies;
mod random;
mod rejections;
mod sizes;
