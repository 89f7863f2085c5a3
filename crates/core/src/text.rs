//! Free texts with a bound.

use std::fmt;
use std::sync::Arc;

use crate::InvalidId;
use crate::limits::TEXT_CHARS_MAX;

/// A free text with a bound: a reason, a reference, a label. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<str>);

impl Text {
    /// Checks and copies `text`.
    ///
    /// # Errors
    /// [`InvalidId`] when it is longer than 256 characters or has a control character.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        if text.chars().count() > TEXT_CHARS_MAX || text.chars().any(char::is_control) {
            let rule = "at most 256 characters in one line, without control characters";
            return Err(InvalidId::new(text, rule));
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether there is nothing in it to be read.
    pub fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
