//! A coded beginning that many answers share, and an end of each one's own. The beginning is coded up
//! to a byte's border; the end follows in a block that is stored as it is, in both formats.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};

use super::{Coding, LITTLE_EFFORT, MUCH_EFFORT, brotli_writer};

/// A member of gzip without a name or a time, without an operating system (RFC 1952, 2.3).
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// The last block, and it is stored (RFC 1951, 3.2.4).
const STORED_LAST: u8 = 1;
/// An empty last meta-block (RFC 7932, 9.2).
const BROTLI_END: u8 = 3;
/// Longest end: the length of a stored block has 16 bits.
const END_BYTES_MAX: usize = 0xffff;

/// The shared beginning.
#[derive(Clone, Debug)]
pub(in crate::http) struct OpenBody {
    /// The beginning in its coding.
    pub(in crate::http) bytes: Bytes,
    coding: Coding,
    /// The checksum of the beginning before it was coded; gzip ends with one over all.
    crc: Arc<Crc>,
}

impl OpenBody {
    /// Encodes a beginning, which [`OpenBody::end`] completes.
    pub(in crate::http) fn new(coding: Coding, plain: Bytes) -> Self {
        let mut crc = Crc::new();
        let bytes = match coding {
            Coding::Identity => plain,
            Coding::Gzip => {
                crc.update(&plain);
                deflated(&plain).into()
            }
            Coding::Brotli => {
                let mut writer = brotli_writer(LITTLE_EFFORT);
                // Writing to memory does not fail.
                writer.write_all(&plain).and_then(|()| writer.flush()).ok();
                Bytes::copy_from_slice(writer.get_ref())
            }
        };
        let crc = Arc::new(crc);
        Self { bytes, coding, crc }
    }

    /// Encodes a body that has no end of its own.
    pub(in crate::http) fn whole(coding: Coding, plain: &Bytes) -> Self {
        Self {
            bytes: coding.write(plain, MUCH_EFFORT),
            coding,
            crc: Arc::default(),
        }
    }

    /// Encodes an end, so that the beginning and it together decode to `beginning + end`.
    pub(in crate::http) fn end(&self, end: &[u8]) -> Vec<u8> {
        debug_assert!((1..=END_BYTES_MAX).contains(&end.len()));
        let length = u16::try_from(end.len()).unwrap_or(u16::MAX);
        let mut coded = Vec::with_capacity(end.len().saturating_add(16));
        match self.coding {
            Coding::Identity => coded.extend_from_slice(end),
            Coding::Gzip => {
                let mut crc = Crc::new();
                crc.combine(&self.crc);
                crc.update(end);
                coded.push(STORED_LAST);
                coded.extend_from_slice(&length.to_le_bytes());
                coded.extend_from_slice(&(!length).to_le_bytes());
                coded.extend_from_slice(end);
                coded.extend_from_slice(&crc.sum().to_le_bytes());
                coded.extend_from_slice(&crc.amount().to_le_bytes());
            }
            Coding::Brotli => {
                // Not the last one, four digits of length, the length less one, stored.
                let head = (u32::from(length).saturating_sub(1) << 3) | (1 << 19);
                coded.extend(head.to_le_bytes().into_iter().take(3));
                coded.extend_from_slice(end);
                coded.push(BROTLI_END);
            }
        }
        coded
    }
}

/// Compresses into a gzip member, up to a border between blocks.
fn deflated(plain: &[u8]) -> Vec<u8> {
    let mut bytes = GZIP_HEAD.to_vec();
    let mut deflate = Compress::new(Compression::new(LITTLE_EFFORT), false);
    let mut rest = plain;
    loop {
        bytes.reserve(rest.len() / 4 + 1_024);
        let before = deflate.total_in();
        let done = deflate.compress_vec(rest, &mut bytes, FlushCompress::Sync);
        debug_assert!(done.is_ok(), "compression into memory");
        let read = deflate.total_in().saturating_sub(before);
        rest = rest
            .get(usize::try_from(read).unwrap_or(usize::MAX)..)
            .unwrap_or_default();
        // Room that is left says that the flush is whole.
        if rest.is_empty() && bytes.len() < bytes.capacity() {
            return bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn read(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        let read = match coding {
            Coding::Identity => {
                plain.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain),
            Coding::Brotli => brotli::Decompressor::new(bytes, 4_096).read_to_end(&mut plain),
        };
        read.unwrap();
        plain
    }

    #[test]
    fn one_beginning_serves_many_ends() {
        let long = "\"A-1\",\"B-22\",\"C-333\",".repeat(20_000);
        for plain in ["", "{", &long] {
            for coding in [Coding::Identity, Coding::Gzip, Coding::Brotli] {
                serves_ends(coding, plain);
            }
        }
    }

    fn serves_ends(coding: Coding, plain: &str) {
        let open = OpenBody::new(coding, Bytes::copy_from_slice(plain.as_bytes()));
        for end in ["}", ",\"server_time\":\"2026-12-01T12:00:00.000Z\"}"] {
            let bytes = [&open.bytes[..], &open.end(end.as_bytes())].concat();
            let expected = [plain, end].concat();
            assert_eq!(read(coding, &bytes), expected.as_bytes(), "{coding:?}");
        }
        assert!(coding == Coding::Identity || open.bytes.len() < plain.len() / 4 + 64);
    }
}
