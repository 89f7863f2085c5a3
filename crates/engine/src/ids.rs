//! Mints ids: 48 bits of time, then 80 random bits. The layout is that of ULID; a version 7 UUID has
//! six random bits less than the 80 that cannot be guessed (assurance.md S3).

use std::sync::{Arc, Mutex};

use soldonce_clock::{Clock, Entropy};
use soldonce_core::{BookingId, CallerId, HoldId};

use crate::locks::lock;

/// Random bytes of one id.
const RANDOM_BYTES: usize = 10;
/// Ids for which randomness is drawn at once: asking the system for each would cost a system call
/// per hold.
const DRAWN_IDS: usize = 64;

/// The generator of ids.
#[derive(Clone)]
pub struct Ids {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    drawn: Arc<Mutex<RandomPool>>,
}

/// Random bytes that no id has yet.
struct RandomPool {
    bytes: [[u8; RANDOM_BYTES]; DRAWN_IDS],
    /// How many of them are left, from the front.
    left: usize,
}

impl RandomPool {
    /// Returns bytes that are used once. They are wiped here: a later reader of this memory learns
    /// nothing of ids that were minted.
    fn take(&mut self, entropy: &dyn Entropy) -> [u8; RANDOM_BYTES] {
        if self.left == 0 {
            entropy.fill(self.bytes.as_flattened_mut());
            self.left = DRAWN_IDS;
        }
        self.left -= 1;
        let next = self.bytes.get_mut(self.left);
        next.map(std::mem::take).unwrap_or_default()
    }
}

impl Ids {
    /// Creates a generator with the time of `clock` and the random bits of `entropy`.
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        let drawn = RandomPool {
            bytes: [[0; RANDOM_BYTES]; DRAWN_IDS],
            left: 0,
        };
        Self {
            clock,
            entropy,
            drawn: Arc::new(Mutex::new(drawn)),
        }
    }

    /// Mints an id for a hold.
    pub fn hold(&self) -> HoldId {
        HoldId::from_bits(self.bits())
    }

    /// Mints an id for a booking.
    pub fn booking(&self) -> BookingId {
        BookingId::from_bits(self.bits())
    }

    /// Mints an id for an API key or a session.
    pub fn caller(&self) -> CallerId {
        CallerId::from_bits(self.bits())
    }

    /// Mints an id of no kind, for requests and unnamed events.
    pub fn bits(&self) -> u128 {
        let random = lock(&self.drawn).take(&*self.entropy);
        let time = u128::try_from(self.clock.wall_ms()).unwrap_or(0) & ((1 << 48) - 1);
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().skip(6).zip(random) {
            *to = from;
        }
        (time << 80) | u128::from_be_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use soldonce_clock::{ManualClock, SystemEntropy};

    use super::*;

    #[test]
    fn ids_differ_and_begin_with_their_time() {
        let clock = Arc::new(ManualClock::at(1_000));
        let ids = Ids::new(
            Arc::clone(&clock) as Arc<dyn Clock>,
            Arc::new(SystemEntropy),
        );
        let minted: BTreeSet<u128> = (0..DRAWN_IDS * 3).map(|_| ids.bits()).collect();
        assert_eq!(minted.len(), DRAWN_IDS * 3);
        let now = u128::try_from(clock.wall_ms()).unwrap();
        assert!(minted.iter().all(|id| id >> 80 == now));
        let clones = [ids.clone().bits(), ids.bits()];
        assert_ne!(clones[0], clones[1]);
    }
}
