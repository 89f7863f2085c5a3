#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod backend;
mod blocking;
mod epoch;
mod epochs;
mod error;
pub mod gate;
#[cfg(feature = "test-kit")]
pub mod history;
mod lease;
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

pub use backend::Durability;
#[cfg(feature = "postgres")]
pub use backend::postgres::PgConfig;
pub use epoch::{EpochError, EpochSource, TokenSource};
pub use epochs::{FileEpochs, FileTokens};
#[cfg(feature = "postgres")]
pub use epochs::{PgEpochs, PgTokens};
pub use error::{
    AcquireError, BackendError, Conflict, InvalidRequest, LostReason, Refusal, ReleaseOutcome,
    RenewError, RunError, TokenError, Unsettled,
};
pub use lease::{Lease, LeaseRef, LeaseState, LeaseTicket, LostSignal, StateWatch};
pub use locks::{Builder, Doctor, DoctorReport, Locks, OwnerInfo};
pub use name::{InvalidName, Name, Namespace};
pub use notice::{Notice, NoticeStream, Notices, What};
pub use owner::Owner;
pub use request::{Cap, Group, Renew, Request, Wait};
pub use run::AcquireResultExt;
pub use soldonce_clock::{
    BootTime, Clock, Entropy, ManualClock, SeededEntropy, SleepFuture, SystemClock, SystemEntropy,
};
pub use stats::Stats;
pub use token::{EPOCH_MAX, FencingToken, InvalidToken, Tag};
pub use worker::Drained;
