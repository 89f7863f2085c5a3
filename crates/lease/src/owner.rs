//! The secret that proves a grant: 128 random bits, drawn anew for every grant.

use std::fmt;

use crate::Entropy;

/// Proves the right to renew and release one grant. Secret: only [`Owner::expose`] shows it, which
/// a backend needs to store and compare it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner([u8; 16]);

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
}
