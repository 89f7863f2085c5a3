//! The secret that proves a grant: 128 random bits, drawn anew for every grant.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::{Entropy, Tag};

/// Proves the right to renew and release one grant. Secret: it shows itself nowhere but through
/// [`Owner::expose`], which a backend needs to store and compare it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner([u8; 16]);

impl Owner {
    /// Draws a new owner.
    pub fn draw(from: &dyn Entropy) -> Self {
        let mut bits = [0; 16];
        from.fill(&mut bits);
        Self(bits)
    }

    /// The owner whose bits a backend stored.
    pub const fn from_bits(bits: [u8; 16]) -> Self {
        Self(bits)
    }

    /// The secret bits. Never log them.
    pub const fn expose(&self) -> [u8; 16] {
        self.0
    }

    /// The tag that this owner's fencing tokens carry: 63 bits of SHA-256, from which nobody finds
    /// the owner.
    pub fn tag(&self) -> Tag {
        let hash = Sha256::digest(self.0);
        let mut bits = [0; 8];
        for (to, from) in bits.iter_mut().zip(hash) {
            *to = from;
        }
        Tag::from_bits(u64::from_be_bytes(bits))
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
        assert_ne!(a.tag(), b.tag());
        assert_eq!(format!("{a:?}"), "Owner(redacted)");
        assert_eq!(Owner::from_bits(a.expose()), a);
    }
}
