//! The one line of a file of numbers, with a checksum: a line that lost a byte must never be taken
//! for a smaller number, because numbers given before would be given again.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{FenceKind, Namespace};

/// Bytes of the hash that end a line.
const CHECK_BYTES: usize = 8;

pub(super) struct Form {
    /// The word for the kind, in the line and in the file's name.
    pub(super) word: &'static str,
    /// The extension of the lock file's name.
    pub(super) lock: &'static str,
    /// Decimal digits in the line.
    digits: usize,
    /// The number before the first.
    pub(super) before_first: u64,
}

pub(super) const fn form(kind: FenceKind) -> Form {
    match kind {
        FenceKind::Epoch => Form {
            word: "epoch",
            lock: "lock",
            digits: 7,
            before_first: 0,
        },
        // Begin at epoch 1, so that they count as anchored.
        FenceKind::Token => Form {
            word: "token",
            lock: "token.lock",
            digits: 16,
            before_first: 1 << 32,
        },
    }
}

/// Writes the line that records `number` as the last one given for `namespace`.
pub(super) fn line(kind: FenceKind, namespace: &Namespace, number: u64) -> String {
    let Form { word, digits, .. } = form(kind);
    // The number after the word is the version of the format.
    let mut line = format!("soldonce-lease-{word} 1 {namespace} {number:0digits$}");
    let hash = Sha256::digest(&line);
    line.push(' ');
    for byte in hash.iter().take(CHECK_BYTES) {
        // Writing to a String cannot fail.
        write!(line, "{byte:02x}").unwrap_or_default();
    }
    line.push('\n');
    line
}

/// Parses a line; `None` if it is not, byte for byte, what [`line`] writes.
pub(super) fn number(kind: FenceKind, namespace: &Namespace, text: &str) -> Option<u64> {
    let number: u64 = text.split(' ').nth(3)?.parse().ok()?;
    (number <= kind.most() && text == line(kind, namespace, number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_and_every_damaged_one_is_refused() {
        let namespace = Namespace::new("app").expect("legal");
        let good = line(FenceKind::Epoch, &namespace, 4_711);
        let read = |text: &str| number(FenceKind::Epoch, &namespace, text);
        assert_eq!(read(&good), Some(4_711));
        for at in 0..good.len() {
            assert_eq!(read(&good[..at]), None, "cut at {at}");
            let mut bytes = good.clone().into_bytes();
            bytes[at] ^= 1;
            let flipped = String::from_utf8(bytes).expect("still ASCII");
            assert_eq!(read(&flipped), None, "bit flipped at {at}");
        }
        assert_eq!(read(&format!("{good}{good}")), None);
        let other = Namespace::new("other").expect("legal");
        let of_other = number(FenceKind::Epoch, &other, &good);
        assert_eq!(of_other, None, "a file of another namespace");
        let of_tokens = number(FenceKind::Token, &namespace, &good);
        assert_eq!(of_tokens, None, "of another kind");
    }
}
