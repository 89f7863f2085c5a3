//! `soldonce-server`: the engine over HTTP. It carries requests to the engine and answers back; it
//! decides nothing about units.

mod accept;
pub mod limits;

pub use accept::{AcceptLimits, Drained, Peer, serve};
