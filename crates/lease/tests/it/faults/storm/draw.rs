//! Random numbers of a seed.

use std::time::Duration;

use soldonce_lease::{Entropy, SeededEntropy};

pub(super) struct Draw(SeededEntropy);

impl Draw {
    pub(super) fn of(seed: u64) -> Self {
        Self(SeededEntropy::new(seed))
    }

    /// A number below `most`.
    pub(super) fn below(&self, most: u64) -> u64 {
        let mut bits = [0; 8];
        self.0.fill(&mut bits);
        u64::from_le_bytes(bits) % most
    }

    /// A place in a list of so many.
    pub(super) fn place(&self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap()
    }

    /// A span between the two.
    pub(super) fn ms(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least))
    }
}
