//! Calls of `soldonce.v1.Sales/Hold` as bytes of HTTP/2: the frames of one call, whose stream is numbered when it is
//! sent, and the `grpc-status` of an answer.

use std::net::SocketAddr;

use prost::Message;

use super::request::Wish;
use crate::kit::LoadError;

/// The method that a load calls.
pub(crate) const HOLD: &str = "/soldonce.v1.Sales/Hold";

/// Bytes of a frame before its payload.
pub(super) const FRAME_HEAD_BYTES: usize = 9;
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
/// A flag of both: the stream ends here.
pub(super) const END_STREAM: u8 = 1;
/// A flag of HEADERS: no more of them follow.
pub(super) const END_HEADERS: u8 = 4;

/// The request of `Hold`, as `proto/` has it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HoldRequest {
    #[prost(string, tag = "1")]
    pub(crate) event: String,
    #[prost(string, optional, tag = "2")]
    pub(crate) holder: Option<String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) units: Vec<WantedUnit>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WantedUnit {
    #[prost(string, optional, tag = "1")]
    pub(crate) seat: Option<String>,
}

/// Writes calls to one server with one key.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    headers: Vec<u8>,
}

impl Calls {
    pub(crate) fn new(address: SocketAddr, key: &str) -> Self {
        // POST and http are in HPACK's table; names after the first are indices of it.
        let mut block = vec![0x83, 0x86];
        let mut field = |name: &[u8], value: &str| {
            block.extend_from_slice(name);
            push_text(&mut block, value);
        };
        field(&[0x04], HOLD);
        field(&[0x01], &address.to_string());
        field(&[0x0f, 0x10], "application/grpc");
        field(&[0x0f, 0x08], &format!("Bearer {key}"));
        field(&[0x00, 0x02, b't', b'e'], "trailers");
        let mut headers = Vec::new();
        push_frame(&mut headers, (HEADERS, END_HEADERS), &block);
        Self { headers }
    }

    pub(super) fn hold(&self, buffer: &mut Vec<u8>, wish: Wish<'_>) {
        let request = HoldRequest {
            event: wish.event.to_string(),
            holder: wish.holder.map(|holder| holder.to_string()),
            units: vec![WantedUnit {
                seat: Some(wish.seat.to_string()),
            }],
        };
        let message = request.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let framed = [&[0], &length.to_be_bytes()[..], &message[..]].concat();
        buffer.extend_from_slice(&self.headers);
        push_frame(buffer, (DATA, END_STREAM), &framed);
    }
}

/// Writes a text as it is, after its length (RFC 7541, section 5.1: 7 bits, then 7 of the rest in each byte).
fn push_text(block: &mut Vec<u8>, text: &str) {
    let mut more = text.len().saturating_sub(127);
    block.push(u8::try_from(text.len().min(127)).unwrap_or_default());
    while more >= 128 {
        block.push(u8::try_from(more % 128 + 128).unwrap_or_default());
        more /= 128;
    }
    if text.len() >= 127 {
        block.push(u8::try_from(more).unwrap_or_default());
    }
    block.extend_from_slice(text.as_bytes());
}

/// Writes a frame of stream 0.
pub(super) fn push_frame(buffer: &mut Vec<u8>, (kind, flags): (u8, u8), payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    buffer.extend_from_slice(&length.to_be_bytes()[1..]);
    buffer.extend_from_slice(&[kind, flags, 0, 0, 0, 0]);
    buffer.extend_from_slice(payload);
}

/// `grpc-status` in HPACK's Huffman code.
const STATUS_CODED: &[u8] = &[0x9a, 0xca, 0xc8, 0xb2, 0x12, 0x34, 0xda, 0x8f];

/// Finds `grpc-status` in a block of header fields that refers to no dynamic table.
pub(super) fn status_of(block: &[u8]) -> Result<Option<u16>, LoadError> {
    let mut rest = Bytes(block);
    let mut found = None;
    while let Some(first) = rest.first() {
        if first & 0x80 != 0 {
            rest.int(0x7f)?;
        } else if first & 0xe0 == 0x20 {
            rest.int(0x1f)?;
        } else {
            let mask = if first & 0x40 == 0 { 0x0f } else { 0x3f };
            found = rest.status(mask)?.or(found);
        }
    }
    Ok(found)
}

/// A reader of HPACK.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn first(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn byte(&mut self) -> Result<u8, LoadError> {
        let (first, rest) = self.0.split_first().ok_or(LoadError::NotHttp)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Reads a field with its name or the index of it; returns the value of `grpc-status`.
    fn status(&mut self, mask: u8) -> Result<Option<u16>, LoadError> {
        let is_status = self.int(mask)? == 0
            && match self.text()? {
                (true, name) => name == STATUS_CODED,
                (false, name) => name == b"grpc-status",
            };
        let status = match self.text()? {
            _ if !is_status => return Ok(None),
            (true, value) => decoded(value),
            (false, value) => plain(value),
        };
        status.map(Some).ok_or(LoadError::NotHttp)
    }

    /// Reads an integer whose first byte has `mask` for it.
    fn int(&mut self, mask: u8) -> Result<usize, LoadError> {
        let mut value = usize::from(self.byte()? & mask);
        if value < usize::from(mask) {
            return Ok(value);
        }
        for shift in [0, 7, 14] {
            let byte = self.byte()?;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(LoadError::TooLarge)
    }

    /// Reads a text, and whether it is in the Huffman code.
    fn text(&mut self) -> Result<(bool, &'a [u8]), LoadError> {
        let is_coded = self.first().ok_or(LoadError::NotHttp)? & 0x80 != 0;
        let length = self.int(0x7f)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(LoadError::NotHttp)?;
        self.0 = rest;
        Ok((is_coded, text))
    }
}

fn plain(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Reads digits in the Huffman code: 0 to 2 have five bits, the others six.
fn decoded(bytes: &[u8]) -> Option<u16> {
    let bit = |at: usize| {
        let byte = bytes.get(at / 8)?;
        Some(u16::from(byte >> (7 - at % 8) & 1))
    };
    let bits = |at: usize, count: usize| {
        (at..at + count).try_fold(0, |value, at| Some(value << 1 | bit(at)?))
    };
    let (mut value, mut at) = (0_u16, 0);
    while let Some(five) = bits(at, 5) {
        let (digit, length) = match (five, bits(at, 6)) {
            (0..=2, _) => (five, 5),
            (_, Some(six @ 25..=31)) => (six - 22, 6),
            _ => break,
        };
        value = value.checked_mul(10)?.checked_add(digit)?;
        at += length;
    }
    (at > 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_found_in_every_form_of_a_field() {
        let coded = |value: &[u8]| {
            let name = [&[0x20, 0x88, 0x00, 0x88][..], STATUS_CODED].concat();
            let value = [&[0x80 | u8::try_from(value.len()).unwrap()], value].concat();
            // After it a field whose name is an index and whose value takes a second byte for its length.
            let long = [&[0x0f, 0x10, 0x7f, 0x01][..], &[b'x'; 128]].concat();
            status_of(&[name, value, long].concat())
        };
        for (value, status) in [
            (&[0x07][..], 0),
            (&[0x7b], 8),
            (&[0x7f], 9),
            (&[0x08, 0x3f], 10),
            (&[0x0b, 0x5f], 14),
            (&[0x0b, 0x9f], 16),
        ] {
            assert_eq!(coded(value), Ok(Some(status)));
        }
        assert_eq!(coded(&[0x1f]), Err(LoadError::NotHttp), "a letter");
        let plain = [&[0x40, 11][..], b"grpc-status", &[2], b"13"].concat();
        assert_eq!(status_of(&plain), Ok(Some(13)));
        assert_eq!(status_of(&[0x88, 0x00, 1, b'a', 1, b'9']), Ok(None));
        for length in 1..plain.len() {
            assert_eq!(status_of(&plain[..length]), Err(LoadError::NotHttp));
        }
    }
}
