//! Names of leases, and the namespaces that keep them apart. `lease.md` 1.1 and 6.1.

use std::fmt;
use std::str::FromStr;

use crate::limits::{NAME_BYTES_MAX, NAMESPACE_BYTES_MAX};

/// A name to lease: 1 to 128 of `A-Z a-z 0-9 . _ : -`. No name can hold a brace, a slash or a
/// space, so a name cannot choose a slot or a foreign key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

/// Keeps the leases of one application apart from all others on the same backend: 1 to 32 of
/// `a-z 0-9 -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Box<str>);

/// Why a text is not a name or not a namespace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{shown}` {rule}")]
pub struct InvalidName {
    what: &'static str,
    shown: String,
    rule: &'static str,
}

/// Most characters of a wrong text that an error repeats.
const SHOWN_CHARS: usize = 40;

fn checked(
    what: &'static str,
    text: &str,
    most: usize,
    legal: fn(u8) -> bool,
    rule: &'static str,
) -> Result<Box<str>, InvalidName> {
    if (1..=most).contains(&text.len()) && text.bytes().all(legal) {
        return Ok(text.into());
    }
    // Without line ends and the like: errors go into logs.
    let shown = text.chars().take(SHOWN_CHARS).flat_map(char::escape_debug);
    let shown = shown.collect();
    Err(InvalidName { what, shown, rule })
}

impl Name {
    /// Creates a name from its text.
    ///
    /// # Errors
    /// [`InvalidName`] when it is empty, longer than 128 bytes, or holds another character.
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        let rule = "must be 1 to 128 letters, digits or . _ : -";
        checked("name", text, NAME_BYTES_MAX, legal, rule).map(Self)
    }
}

impl Namespace {
    /// Returns the namespace of backends that need none, because they share no storage.
    pub(crate) fn local() -> Self {
        Self("local".into())
    }

    /// Creates a namespace from its text.
    ///
    /// # Errors
    /// [`InvalidName`] when it is empty, longer than 32 bytes, or holds another character.
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let rule = "must be 1 to 32 small letters, digits or -";
        checked("namespace", text, NAMESPACE_BYTES_MAX, legal, rule).map(Self)
    }
}

macro_rules! text_forms {
    ($type:ty) => {
        impl $type {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }
    };
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

text_forms!(Name);
text_forms!(Namespace);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_legal_texts_and_one_byte_more() {
        assert!(Name::new(&"x".repeat(128)).is_ok());
        assert!(Name::new(&"x".repeat(129)).is_err());
        assert!(Namespace::new(&"x".repeat(32)).is_ok());
        assert!(Namespace::new(&"x".repeat(33)).is_err());
        assert!(Name::new("").is_err());
        assert!(Namespace::new("App").is_err());
    }

    #[test]
    fn an_error_shows_a_part_of_a_long_text() {
        let error = Name::new(&" ".repeat(5_000)).expect_err("too long");
        assert!(error.to_string().len() < 100, "{error}");
    }
}
