#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod backend;
mod blocking;
mod client;
mod epoch;
mod epochs;
mod error;
pub mod gate;
mod grant;
#[cfg(feature = "test-kit")]
pub mod history;
mod inbox;
mod lease;
pub mod limits;
mod locks;
mod name;
mod notice;
mod options;
mod owner;
mod request;
mod run;
mod stats;
#[cfg(feature = "test-kit")]
pub mod test_kit;
mod timing;
mod token;
mod worker;

pub use backend::Durability;
#[cfg(feature = "postgres")]
pub use backend::postgres::PgConfig;
pub use client::OwnerInfo;
pub use epoch::{EpochError, EpochSource, TokenSource};
pub use epochs::{FileEpochs, FileTokens};
#[cfg(feature = "postgres")]
pub use epochs::{PgEpochs, PgTokens};
pub use error::{
    AcquireError, BackendError, Conflict, InvalidRequest, LostReason, Refusal, ReleaseOutcome,
    RenewError, RunError, TokenError, Unsettled,
};
pub use grant::LeaseState;
pub use lease::{Lease, LeaseRef, LeaseTicket, LostSignal, StateWatch};
pub use locks::{Builder, Doctor, DoctorReport, Locks};
pub use name::{InvalidName, Name, Namespace};
pub use notice::{Notice, NoticeKind, NoticeStream, Notices};
pub use options::{Cap, Renew, Wait};
pub use owner::Owner;
pub use request::{Group, Request};
pub use run::AcquireResultExt;
pub use soldonce_clock::{
    BootTime, Clock, Entropy, ManualClock, SeededEntropy, SleepFuture, SystemClock, SystemEntropy,
};
pub use stats::{Drained, Stats};
pub use token::{EPOCH_MAX, FencingToken, InvalidToken, Tag};
