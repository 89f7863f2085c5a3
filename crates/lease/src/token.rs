//! Fencing tokens: a later grant of a name has a higher one. `lease.md` 4.1.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Highest epoch: 21 bits.
pub const EPOCH_MAX: u32 = (1 << 21) - 1;

/// Digits of a token in text.
const DIGITS: usize = 16;

/// Bits of the counter, the lower half of a token's number.
const COUNTER_BITS: u32 = 32;

/// Highest number of a token: 53 bits, exact in Lua, JavaScript, JSON and SQL's `bigint`.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// A number that is higher for every later grant of a name. Public: it orders, it does not
/// authorise.
///
/// Its text is 16 decimal digits with leading zeros, so the order of the texts is the order of the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(NonZeroU64);

impl FencingToken {
    /// Builds a token from its number; `None` for zero and for more than 53 bits.
    pub fn new(number: u64) -> Option<Self> {
        let number = NonZeroU64::new(number).filter(|number| number.get() <= NUMBER_MAX);
        number.map(Self)
    }

    /// Builds a token of its halves; `None` if both are zero or the epoch is above [`EPOCH_MAX`].
    pub fn from_parts(epoch: u32, counter: u32) -> Option<Self> {
        Self::new((u64::from(epoch) << COUNTER_BITS) | u64::from(counter))
    }

    /// Returns `epoch * 2^32 + counter`, which is below 2^53.
    pub fn number(self) -> u64 {
        self.0.get()
    }

    /// Returns the number as a `bigint` of SQL stores it.
    pub fn sql(self) -> i64 {
        i64::try_from(self.number()).unwrap_or(i64::MAX)
    }

    /// Returns the upper half: from a fence source, or from the server's clock.
    pub fn epoch(self) -> u32 {
        u32::try_from(self.number() >> COUNTER_BITS).unwrap_or(EPOCH_MAX)
    }

    /// Returns the lower half, which the backend counts.
    pub fn counter(self) -> u32 {
        u32::try_from(self.number() & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    }
}

/// Computes the number that tokens without a fence source start from: the wall clock, with room for
/// 2,048 grants in each millisecond. It stays below 2^53 until the year 2109, and above all epochs
/// that a source is likely to have given.
pub(crate) fn of_clock(wall_ms: i64) -> u64 {
    const GRANTS_PER_MS: u64 = 2_048;
    let wall = u64::try_from(wall_ms).unwrap_or(0);
    wall.saturating_mul(GRANTS_PER_MS).min(NUMBER_MAX - 1)
}

/// Computes the highest number that can have been given by now. A higher one is a mistake, and a
/// source that was told to go above it would use up the epochs of its namespace for good.
pub(crate) fn most_by(wall_ms: i64) -> u64 {
    /// Epochs of losses of data, on top of those of the clock that came before a source.
    const LOSSES: u64 = 1 << 16;
    of_clock(wall_ms).saturating_add(LOSSES << 32)
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016}", self.0)
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A text that is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fencing token is 16 decimal digits")]
pub struct InvalidToken;

impl FromStr for FencingToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        // `parse` takes a sign, which would be a second spelling.
        let plain = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| plain);
        number.and_then(Self::new).ok_or(InvalidToken)
    }
}

impl serde::Serialize for FencingToken {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for FencingToken {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_come_back() {
        let token = FencingToken::from_parts(7, 12_345).expect("legal");
        assert_eq!((token.epoch(), token.counter()), (7, 12_345));
        assert_eq!(token.number(), (7 << 32) + 12_345);
        assert_eq!(FencingToken::from_parts(0, 0), None);
        let highest = FencingToken::from_parts(EPOCH_MAX, u32::MAX).expect("legal");
        assert_eq!(highest.number(), NUMBER_MAX);
        assert_eq!(FencingToken::from_parts(EPOCH_MAX + 1, 0), None);
    }

    #[test]
    fn a_later_epoch_beats_every_counter() {
        let old = FencingToken::from_parts(6, u32::MAX).expect("legal");
        let new = FencingToken::from_parts(7, 1).expect("legal");
        assert!(old < new && old.to_string() < new.to_string());
    }

    #[test]
    fn text_has_one_spelling() {
        let token = FencingToken::new(41).expect("legal");
        let text = "0000000000000041";
        assert_eq!(format!("{token:?} {token}"), format!("{text} {text}"));
        assert_eq!(text.parse(), Ok(token));
        for bad in [
            "41",
            "+000000000000041",
            "0000000000000000",
            "9999999999999999",
            "",
            "-",
        ] {
            assert_eq!(bad.parse::<FencingToken>(), Err(InvalidToken), "{bad}");
        }
    }

    #[test]
    fn a_million_tokens_sorted_as_text_are_sorted_as_numbers() {
        let of = |i: u32| FencingToken::from_parts(i % 2_000, i.wrapping_mul(2_654_435_761) | 1);
        let mut tokens: Vec<FencingToken> = (0..1_000_000).filter_map(of).collect();
        tokens.sort_unstable();
        let texts = tokens.windows(2).filter_map(|pair| match pair {
            [a, b] => Some((format!("{a}"), format!("{b}"))),
            _ => None,
        });
        assert!(texts.into_iter().all(|(a, b)| a <= b));
    }
}
