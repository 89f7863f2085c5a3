//! Mints ids: 48 bits of time, then 80 random bits. The layout is that of ULID; a version 7 UUID has
//! six random bits less than the 80 that nobody can guess (assurance.md S3).

use std::sync::Arc;

use soldonce_core::{BookingId, CallerId, HoldId};
use soldonce_lease::{Clock, Entropy};

/// Where ids come from.
#[derive(Clone)]
pub struct Ids {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl Ids {
    /// Ids with the time of `clock` and the random bits of `entropy`.
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { clock, entropy }
    }

    /// A fresh id for a hold.
    pub fn hold(&self) -> HoldId {
        HoldId::from_bits(self.bits())
    }

    /// A fresh id for a booking.
    pub fn booking(&self) -> BookingId {
        BookingId::from_bits(self.bits())
    }

    /// A fresh id for an API key or a session.
    pub fn caller(&self) -> CallerId {
        CallerId::from_bits(self.bits())
    }

    /// A fresh id of no kind, for requests and unnamed events.
    pub fn bits(&self) -> u128 {
        let mut random = [0; 10];
        self.entropy.fill(&mut random);
        let time = u128::try_from(self.clock.wall_ms()).unwrap_or(0) & ((1 << 48) - 1);
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().skip(6).zip(random) {
            *to = from;
        }
        (time << 80) | u128::from_be_bytes(bytes)
    }
}
