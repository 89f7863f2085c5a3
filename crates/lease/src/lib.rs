//! `soldonce-lease`: timed exclusive claims on names, with fencing tokens.
#![forbid(unsafe_code)]

pub mod backend;
mod clock;
mod entropy;
mod epoch;
mod epochs;
mod error;
pub mod gate;
pub mod limits;
mod name;
mod owner;
mod token;

pub use clock::{BootTime, Clock, ManualClock, SleepFuture, SystemClock};
pub use entropy::{Entropy, SeededEntropy, SystemEntropy};
pub use epoch::{EpochError, EpochSource, TokenSource};
pub use epochs::FileEpochs;
#[cfg(feature = "postgres")]
pub use epochs::{PgEpochs, PgTokens};
pub use error::{
    AcquireError, BackendError, Conflict, InvalidRequest, LostReason, Refusal, ReleaseOutcome,
    RenewError, RunError, TokenError, Unsettled,
};
pub use name::{InvalidName, Name, Namespace};
pub use owner::Owner;
pub use token::{EPOCH_MAX, FencingToken, InvalidToken, Tag};
