//! The only place that draws random bits.

use std::sync::Mutex;

/// A source of random bits. One implementation asks the operating system, the other replays from a
/// seed.
pub trait Entropy: Send + Sync + 'static {
    /// Fills `bytes` with random bits.
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's generator, fit for keys and secrets.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    /// Panics when the operating system gives no randomness: nothing secret may be made without it.
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system gives random bits");
    }
}

/// A generator that gives the same bits for the same seed (`SplitMix64`). For tests and simulation;
/// never for secrets.
#[derive(Debug)]
pub struct SeededEntropy {
    state: Mutex<u64>,
}

impl SeededEntropy {
    /// Creates a generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            state: Mutex::new(seed),
        }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for chunk in bytes.chunks_mut(8) {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let drawn = mix(*state).to_le_bytes();
            for (to, from) in chunk.iter_mut().zip(drawn) {
                *to = from;
            }
        }
    }
}

/// Computes the output function of `SplitMix64` (Steele, Lea, Flood: Fast splittable pseudorandom
/// number generators, OOPSLA 2014).
fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let (a, b, other) = (
            SeededEntropy::new(7),
            SeededEntropy::new(7),
            SeededEntropy::new(8),
        );
        let draw = |from: &SeededEntropy| {
            let mut bytes = [0; 20];
            from.fill(&mut bytes);
            bytes
        };
        let first = draw(&a);
        assert_eq!(first, draw(&b));
        assert_ne!(first, draw(&a), "the sequence must move on");
        assert_ne!(first, draw(&other));
    }

    #[test]
    fn system_bits_differ() {
        let (mut a, mut b) = ([0; 16], [0; 16]);
        SystemEntropy.fill(&mut a);
        SystemEntropy.fill(&mut b);
        assert_ne!(a, b);
    }
}
