//! Hashes as hexadecimal text.

use std::fmt::Write;

/// Formats a hash in lower-case digits.
pub(crate) fn hex(hash: &[u8; 32]) -> String {
    hash.iter().fold(String::new(), |mut text, byte| {
        // Writing to memory does not fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

/// Parses a hash; `None` unless the text is 64 hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}
