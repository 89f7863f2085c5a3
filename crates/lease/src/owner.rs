//! The secret that proves a grant: 128 random bits, drawn anew for every grant.

use std::fmt;

use crate::{Entropy, SystemEntropy};

const OWNER_BYTES: usize = 16;

/// Owners that are drawn at once. The block is at most a memory page of random bits.
const BLOCK: usize = 64;

/// Proves the right to renew and release one grant. Secret: only [`Owner::expose`] shows it, which
/// a backend needs to store and compare it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner([u8; OWNER_BYTES]);

impl Owner {
    /// Draws a new owner at random.
    pub fn draw(from: &dyn Entropy) -> Self {
        let mut bits = [0; 16];
        from.fill(&mut bits);
        Self(bits)
    }

    /// Builds the owner from the bits that a backend stored.
    pub const fn from_bits(bits: [u8; 16]) -> Self {
        Self(bits)
    }

    /// Returns the secret bits. Never log them.
    pub const fn expose(&self) -> [u8; 16] {
        self.0
    }
}

/// Draws owners in blocks: one system call serves many. Only the lease thread has it, and a forked
/// process has no lease thread, so the same block is never drawn from twice.
#[derive(Default)]
pub(crate) struct Owners(Vec<[u8; OWNER_BYTES]>);

impl Owners {
    pub(crate) fn draw(&mut self) -> Owner {
        if let Some(bits) = self.0.pop() {
            return Owner(bits);
        }
        let mut block = [0; OWNER_BYTES * BLOCK];
        SystemEntropy.fill(&mut block);
        let (owners, _) = block.as_chunks();
        self.0.extend_from_slice(owners);
        match self.0.pop() {
            Some(bits) => Owner(bits),
            None => Owner::draw(&SystemEntropy),
        }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededEntropy;

    #[test]
    fn debug_hides_the_secret_and_owners_differ() {
        let from = SeededEntropy::new(1);
        let (a, b) = (Owner::draw(&from), Owner::draw(&from));
        assert_ne!(a, b);
        assert_eq!(format!("{a:?}"), "Owner(redacted)");
        assert_eq!(Owner::from_bits(a.expose()), a);
    }

    #[test]
    fn owners_of_several_blocks_are_all_others() {
        let mut owners = Owners::default();
        let drawn: Vec<Owner> = (0..3 * BLOCK).map(|_| owners.draw()).collect();
        let unlike: std::collections::HashSet<Owner> = drawn.iter().copied().collect();
        assert_eq!(unlike.len(), drawn.len());
        assert!(!unlike.contains(&Owner::from_bits([0; OWNER_BYTES])));
    }
}
