//! The one line of an epoch file, and how it is read with suspicion: a line that lost a byte must
//! never be taken for a smaller number, because numbers given before would be given again.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{EPOCH_MAX, Namespace};

/// What every line begins with; the number is the version of the form.
const MAGIC: &str = "soldonce-lease-epoch 1";

/// Bytes of the hash that end a line.
const CHECK_BYTES: usize = 8;

/// The line that says that `epoch` was the last one given for `namespace`.
pub(super) fn line(namespace: &Namespace, epoch: u32) -> String {
    let mut line = format!("{MAGIC} {namespace} {epoch:07}");
    let hash = Sha256::digest(&line);
    line.push(' ');
    for byte in hash.iter().take(CHECK_BYTES) {
        // Writing to a String cannot fail.
        write!(line, "{byte:02x}").unwrap_or_default();
    }
    line.push('\n');
    line
}

/// The epoch of a line; `None` when it is not, byte for byte, what [`line`] writes.
pub(super) fn epoch(namespace: &Namespace, text: &str) -> Option<u32> {
    let digits = text.split(' ').nth(3)?;
    let epoch = digits.parse().ok().filter(|&epoch| epoch <= EPOCH_MAX)?;
    (text == line(namespace, epoch)).then_some(epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_and_every_damaged_one_is_refused() {
        let namespace = Namespace::new("app").expect("legal");
        let good = line(&namespace, 4_711);
        assert_eq!(epoch(&namespace, &good), Some(4_711));
        for at in 0..good.len() {
            assert_eq!(epoch(&namespace, &good[..at]), None, "cut at {at}");
            let mut bytes = good.clone().into_bytes();
            bytes[at] ^= 1;
            let flipped = String::from_utf8(bytes).expect("still ASCII");
            assert_eq!(epoch(&namespace, &flipped), None, "bit flipped at {at}");
        }
        assert_eq!(epoch(&namespace, &format!("{good}{good}")), None);
        let other = Namespace::new("other").expect("legal");
        assert_eq!(epoch(&other, &good), None, "a file of another namespace");
    }
}
