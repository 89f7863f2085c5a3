//! Messages as bytes; what is in them is `message.rs`'s. gRPC's framing is left to tonic, but for the common case: a
//! command whose message came plain and whole, and its one answer. tonic would copy both from buffer to buffer.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::{Buf, BufMut, Bytes};
use futures_util::stream::iter;
use http_body_util::StreamBody;
use hyper::body::Frame;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::GRPC_CONTENT_TYPE;

/// Size of a new buffer: most messages fit.
const BUFFER_BYTES: usize = 1_024;
/// Bytes of a stream that are sent together.
const YIELD_BYTES: usize = 32 * 1_024;

/// Bytes before a message: whether it is coded, and its length.
const HEAD_BYTES: usize = 5;
const CODING: HeaderName = HeaderName::from_static("grpc-encoding");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// Returns the one message of a body, if it is plain and whole; all else is left to tonic.
pub(super) fn plain_message(headers: &HeaderMap, framed: &Bytes) -> Option<Bytes> {
    let (head, message) = framed.split_first_chunk::<HEAD_BYTES>()?;
    let [0, length @ ..] = *head else {
        return None;
    };
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    let coding = headers.get(CODING);
    let is_plain = coding.is_none_or(|coding| coding == "identity");
    (is_plain && length == message.len()).then(|| framed.slice(HEAD_BYTES..))
}

/// Builds the answer to a command: its message, plain, and the status behind it.
pub(super) fn answer(said: tonic::Response<Bytes>) -> Response {
    let (metadata, message, _) = said.into_parts();
    // No answer to a command has 4 GiB.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let data = [&[0_u8][..], &length.to_be_bytes()[..], &message[..]].concat();
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, OK);
    let frames = [
        Ok::<_, Infallible>(Frame::data(Bytes::from(data))),
        Ok(Frame::trailers(trailers)),
    ];
    let body = Body::new(StreamBody::new(iter(frames)));
    headed(metadata.into_headers(), body)
}

/// Builds the answer to a refused call: header fields alone.
pub(super) fn refusal(mut status: Status) -> Response {
    // Taken out, as tonic would copy it.
    let mut headers = std::mem::take(status.metadata_mut()).into_headers();
    // Percent signs and base64 are legal in a header, so this never fails.
    status.add_header(&mut headers).ok();
    headed(headers, Body::empty())
}

fn headed(mut headers: HeaderMap, body: Body) -> Response {
    headers.insert(header::CONTENT_TYPE, GRPC_CONTENT_TYPE);
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER_BYTES, YIELD_BYTES)
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER_BYTES, YIELD_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_only_if_it_is_plain_whole_and_alone() {
        let taken = |coding: &'static str, framed: &'static [u8]| {
            let headers = HeaderMap::from_iter([(CODING, HeaderValue::from_static(coding))]);
            plain_message(&headers, &Bytes::from_static(framed))
        };
        let framed = b"\0\0\0\0\x02ab";
        let message = Some(Bytes::from_static(b"ab"));
        let without = HeaderMap::new();
        assert_eq!(
            plain_message(&without, &Bytes::from_static(framed)),
            message
        );
        assert_eq!(taken("identity", framed), message);
        assert_eq!(taken("identity", b"\0\0\0\0\0"), Some(Bytes::new()));
        for (coding, framed) in [
            ("gzip", &framed[..]),
            ("br", framed),
            ("identity", b"\x01\0\0\0\x02ab"),
            ("identity", b"\0\0\0\0\x03ab"),
            ("identity", b"\0\0\0\0\x01ab"),
            ("identity", b"\0\0\0\0"),
            ("identity", b""),
        ] {
            assert_eq!(taken(coding, framed), None, "{coding} {framed:?}");
        }
    }
}
