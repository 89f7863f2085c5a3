//! `soldonce-lease`: timed exclusive claims on names. So far it holds the two seams through which
//! time and randomness enter everything built here; it knows nothing of events and units.

mod clock;
mod entropy;

pub use clock::{BootTime, Clock, ManualClock, SleepFuture, SystemClock};
pub use entropy::{Entropy, SeededEntropy, SystemEntropy};
