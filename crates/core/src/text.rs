//! Free texts with a bound.

use crate::limits::TEXT_CHARS_MAX;
use crate::{InvalidId, text_id};

fn check(text: &str) -> Result<(), InvalidId> {
    if text.chars().count() > TEXT_CHARS_MAX || text.chars().any(char::is_control) {
        let rule = "at most 256 characters in one line, without control characters";
        return Err(InvalidId::new(text, rule));
    }
    Ok(())
}

text_id! {
    /// A free text of at most 256 characters in one line: a reason, a reference, a label.
    Text, check
}

impl Text {
    /// Tells whether there is nothing in it to be read.
    pub fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }
}
