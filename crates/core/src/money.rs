//! Amounts in integer minor units of an event's one currency. No floats, no silent overflow.

use std::fmt;

use crate::limits::PRICE_MAX;

/// Minor units (cents, pence ..) of the event's currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(i64);

impl Amount {
    pub const ZERO: Self = Self(0);

    /// Returns a price of `minor` units; `None` when negative or beyond the largest price.
    pub fn price(minor: i64) -> Option<Self> {
        (0..=PRICE_MAX).contains(&minor).then_some(Self(minor))
    }

    /// Returns an amount as it was stored.
    pub const fn from_minor(minor: i64) -> Self {
        Self(minor)
    }

    pub const fn minor(self) -> i64 {
        self.0
    }

    /// Adds `other`; `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Subtracts `other`; `None` on overflow.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Subtracts `other`; zero when that is more.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0).max(0))
    }

    /// Returns the sum of prices.
    ///
    /// # Panics
    /// Never for prices of one command: `limits.rs` relates the largest price to the largest count.
    pub fn sum(prices: impl Iterator<Item = Amount>) -> Self {
        prices.fold(Self::ZERO, |sum, price| {
            sum.checked_add(price)
                .expect("limits.rs bounds price x count below i64::MAX")
        })
    }
}

/// Currencies without a smaller unit: their minor unit is the major one.
const WITHOUT_DIGITS: [&str; 15] = [
    "BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF",
    "XOF", "XPF",
];

/// Currencies of a thousand minor units.
const WITH_THREE_DIGITS: [&str; 5] = ["BHD", "JOD", "KWD", "OMR", "TND"];

/// An ISO 4217 code: three upper-case letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// Parses the code of a currency; `None` when it is not three letters A to Z.
    pub fn parse(code: &str) -> Option<Self> {
        let bytes: [u8; 3] = code.as_bytes().try_into().ok()?;
        let is_legal = bytes.iter().all(u8::is_ascii_uppercase);
        is_legal.then_some(Self(bytes))
    }

    /// Returns how many digits of its minor units are behind the point, as payment providers count
    /// them. ISO 4217 and the tables of browsers say less for some: 5000 are 50.00 forints wherever they
    /// are charged.
    pub fn digits(&self) -> u8 {
        let is_in = |codes: &[&str]| codes.contains(&self.as_str());
        if is_in(&WITHOUT_DIGITS) {
            0
        } else if is_in(&WITH_THREE_DIGITS) {
            3
        } else {
            2
        }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
