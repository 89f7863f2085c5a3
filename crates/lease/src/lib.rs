// The first definition of a link counts: on docs.rs this one, in the repository that of the README.
//! [SPEC.md]: https://docs.rs/crate/soldonce-lease/latest/source/SPEC.md
//! [GUARANTEES.md]: https://docs.rs/crate/soldonce-lease/latest/source/GUARANTEES.md
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod backend;
mod blocking;
mod client;
mod error;
mod fence;
pub mod gate;
mod grant;
mod inbox;
mod lease;
mod leases;
pub mod limits;
mod locks;
mod name;
mod notice;
mod owner;
mod request;
mod run;
mod stats;
#[cfg(feature = "test-kit")]
pub mod test_kit;
mod timing;
mod token;
mod worker;

#[cfg(feature = "postgres")]
pub use backend::postgres::PgConfig;
pub use blocking::block_on;
pub use client::OwnerInfo;
pub use error::{
    AcquireError, BackendError, Conflict, FenceError, InvalidRequest, LostReason, Refusal,
    ReleaseOutcome, RenewError, RunError, TokenError, Unsettled,
};
#[cfg(feature = "postgres")]
pub use fence::PgFence;
pub use fence::{FenceKind, FenceSource, FileFence};
pub use grant::{LeaseState, LeaseTicket};
pub use lease::{Lease, LeaseRef};
pub use leases::{Builder, Doctor, Leases};
pub use name::{InvalidName, Name, Namespace};
pub use notice::{Notice, NoticeKind, NoticeStream, Notices};
pub use owner::Owner;
pub use request::{RemoteGrant, Request};
pub use soldonce_clock::{
    BootTime, Clock, Entropy, ManualClock, SeededEntropy, SleepFuture, SystemClock, SystemEntropy,
};
pub use stats::{Drained, Stats};
pub use token::{EPOCH_MAX, FencingToken, InvalidToken};
