//! Names that a provider gives, or is given: texts that are safe in a URL, a header and a log.

use std::sync::Arc;

use soldonce_core::InvalidId;

/// Declares a name of at most so many bytes. Cheap to clone.
macro_rules! name_at_provider {
    ($(#[$doc:meta])* $name:ident, $bytes_max:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Checks and copies `text`.
            ///
            /// # Errors
            /// [`InvalidId`](soldonce_core::InvalidId) when empty, too long, or illegal in a path.
            pub fn parse(text: &str) -> Result<Self, soldonce_core::InvalidId> {
                $crate::payment::name::token(text, $bytes_max).map(Self)
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

/// Copies a text, if it may be put into a URL, a header and a log as it is.
pub(super) fn token(text: &str, bytes_max: usize) -> Result<Arc<str>, InvalidId> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    // A dot alone, or two, would be a step in a path.
    let has_name = text.bytes().any(|byte| byte != b'.');
    if has_name && text.len() <= bytes_max && text.bytes().all(is_legal) {
        return Ok(text.into());
    }
    Err(InvalidId {
        text: text.chars().take(bytes_max.min(64)).collect(),
        rule: "a few characters of A-Z, a-z, 0-9, `.`, `_`, `-`",
    })
}
