//! Names: texts chosen by callers, and 128-bit ids minted by the engine. Decides what a legal id
//! is; mints nothing.

use std::fmt;

use crate::limits::ID_BYTES_MAX;

/// Why a text is not an id or not a legal text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidId {
    /// The refused text, cut to a printable length.
    pub text: String,
    /// The form of a legal one.
    pub rule: &'static str,
}

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, rule) = (self.text.escape_debug(), self.rule);
        write!(f, "`{text}` is not allowed: {rule}")
    }
}

impl std::error::Error for InvalidId {}

impl InvalidId {
    /// Refuses a text by a rule.
    pub fn new(text: &str, rule: &'static str) -> Self {
        let text = text.chars().take(ID_BYTES_MAX + 1).collect();
        Self { text, rule }
    }
}

/// Checks a text that callers may choose: `[A-Za-z0-9._-]{1,64}` (api.md 2).
///
/// Every other character is refused, also those which Unicode normalisation would turn into a legal
/// one, so no two accepted spellings name one thing.
pub(crate) fn check(text: &str) -> Result<(), InvalidId> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_legal) {
        return Ok(());
    }
    let rule = "1 to 64 characters of A-Z, a-z, 0-9, `.`, `_`, `-`";
    Err(InvalidId::new(text, rule))
}

/// Declares a name or a bounded text: one that passes the function `$check`, called with it and `$more`. Cheap to
/// clone.
#[macro_export]
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $check:ident $(, $more:expr)*) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Checks and copies `text`.
            ///
            /// # Errors
            /// `InvalidId` with the rule that it breaks.
            pub fn parse(text: &str) -> Result<Self, $crate::InvalidId> {
                $check(text $(, $more)*)?;
                Ok(Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::InvalidId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A name inside a chart.
    Id, check
}
text_id! {
    /// The name of an event.
    EventId, check
}
text_id! {
    /// The caller's own name for a shopper. Means nothing without the caller (api.md 7).
    HolderName, check
}

/// Digits of the text form of 128-bit ids: Crockford's base 32, lower case.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Characters of 128 bits in base 32.
const DIGITS_OF_128_BITS: usize = 26;

/// Encodes 128 bits in 26 characters of Crockford's base 32, most significant first, lower case.
pub fn encode_128(bits: u128) -> String {
    let mut text = vec![b'0'; DIGITS_OF_128_BITS];
    let mut rest = bits;
    for place in text.iter_mut().rev() {
        let digit = usize::try_from(rest & 31).unwrap_or(0);
        *place = DIGITS.get(digit).copied().unwrap_or(b'0');
        rest >>= 5;
    }
    String::from_utf8(text).unwrap_or_default()
}

/// Decodes a text of [`encode_128`]; `None` for any other spelling.
pub fn decode_128(text: &str) -> Option<u128> {
    if text.len() != DIGITS_OF_128_BITS || text.as_bytes().first().is_none_or(|first| *first > b'7')
    {
        return None;
    }
    text.bytes().try_fold(0_u128, |bits, byte| {
        let digit = DIGITS.iter().position(|digit| *digit == byte)?;
        Some((bits << 5) | u128::try_from(digit).ok()?)
    })
}

/// Declares a name of 128 bits that the engine mints: a prefix, and the bits in base 32.
#[macro_export]
macro_rules! minted_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits.to_be_bytes())
            }

            /// Returns the id with these bytes, most significant first.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Returns its bytes, most significant first.
            pub const fn bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::InvalidId;

            fn from_str(text: &str) -> Result<Self, $crate::InvalidId> {
                text.strip_prefix($prefix)
                    .and_then($crate::decode_128)
                    .map(Self::from_bits)
                    .ok_or_else(|| {
                        let rule = concat!("`", $prefix, "` and 26 base-32 digits");
                        $crate::InvalidId::new(text, rule)
                    })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}{}", $prefix, $crate::encode_128(u128::from_be_bytes(self.0)))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

// 48 bits of time in milliseconds, then 80 random bits: ids made later sort later, which keeps the ledger's keys in
// order, and none can be guessed.
minted_id! {
    /// The name of a hold.
    HoldId, "hld_"
}
minted_id! {
    /// The name of a booking.
    BookingId, "bkg_"
}
minted_id! {
    /// The name of a caller: an API key or a shopper's session. Holders are scoped by it.
    CallerId, "cal_"
}

/// The holder of a hold: the caller's own name for a shopper, inside that caller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The key or session that speaks for the holder.
    pub caller: CallerId,
    /// Its name for the holder.
    pub name: HolderName,
}
