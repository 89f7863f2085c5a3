//! Where time and randomness enter the workspace. A program takes a [`Clock`] and an [`Entropy`] as
//! arguments; tests advance a [`ManualClock`] and draw from a [`SeededEntropy`].

mod clock;
mod entropy;

pub use clock::{BootTime, Clock, ManualClock, SleepFuture, SystemClock, timeout_at};
pub use entropy::{Entropy, SeededEntropy, SystemEntropy};
