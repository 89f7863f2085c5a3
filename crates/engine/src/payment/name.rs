//! Names that a provider gives, or is given: texts that are safe in a URL, a header and a log.

use soldonce_core::InvalidId;

/// Checks that a text may be put into a URL, a header and a log as it is.
pub(super) fn token(text: &str, bytes_max: usize) -> Result<(), InvalidId> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    // A dot alone, or two, would be a step in a path.
    let has_name = text.bytes().any(|byte| byte != b'.');
    if has_name && text.len() <= bytes_max && text.bytes().all(is_legal) {
        return Ok(());
    }
    Err(InvalidId {
        text: text.chars().take(bytes_max.min(64)).collect(),
        rule: "a few characters of A-Z, a-z, 0-9, `.`, `_`, `-`",
    })
}
