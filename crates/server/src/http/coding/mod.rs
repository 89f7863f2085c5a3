//! Answers in fewer bytes: which coding a caller accepts, and the answer in it. Large answers are
//! coded once and shared (`open.rs`, `rendered.rs`), files once per process ([`Coded`]), others each.

mod open;

use std::io::Write;
use std::sync::OnceLock;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt, Collected};

pub(super) use self::open::OpenBody;

use super::headers::listed;
use crate::limits::{
    BROTLI_WINDOW_BITS, CODED_ANSWER_BYTES_MAX, CODED_BYTES_MIN, CODING_BUFFER_BYTES,
};

/// How the bytes of an answer are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Coding {
    /// As they are.
    Identity,
    Gzip,
    Brotli,
}

/// How hard gzip and brotli work, of 9, for an answer of one caller, or one that soon changes.
const LITTLE_EFFORT: u32 = 4;
/// How hard they work for an answer that many get.
const MUCH_EFFORT: u32 = 9;

impl Coding {
    /// Chooses the best coding that the caller accepts (RFC 9110, 12.5.3).
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        let brotli = weight(headers, "br");
        let gzip = weight(headers, "gzip");
        if brotli > 0 && brotli >= gzip {
            Self::Brotli
        } else if gzip > 0 {
            Self::Gzip
        } else {
            Self::Identity
        }
    }

    /// Says in an answer how it is written, and that the caller's wish decided it.
    pub(super) fn tell(self, headers: &mut HeaderMap) {
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        let name = match self {
            Self::Identity => return,
            Self::Gzip => "gzip",
            Self::Brotli => "br",
        };
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
    }

    /// Encodes the bytes in this coding.
    pub(super) fn write(self, plain: &Bytes, effort: u32) -> Bytes {
        match self {
            Self::Identity => plain.clone(),
            Self::Gzip => {
                let mut writer = GzEncoder::new(Vec::new(), Compression::new(effort));
                // Writing to memory does not fail.
                writer.write_all(plain).ok();
                writer.finish().unwrap_or_default().into()
            }
            Self::Brotli => {
                let mut writer = brotli_writer(effort);
                // Writing to memory does not fail.
                writer.write_all(plain).ok();
                writer.into_inner().into()
            }
        }
    }
}

fn brotli_writer(effort: u32) -> brotli::CompressorWriter<Vec<u8>> {
    brotli::CompressorWriter::new(Vec::new(), CODING_BUFFER_BYTES, effort, BROTLI_WINDOW_BITS)
}

/// Returns how much a caller wants a coding, in thousandths; 0 is not at all.
fn weight(headers: &HeaderMap, coding: &str) -> u32 {
    let mut any = 0;
    for item in listed(headers, header::ACCEPT_ENCODING) {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = thousandths(weight.trim());
        if name.trim().eq_ignore_ascii_case(coding) {
            return weight;
        }
        if name.trim() == "*" {
            any = weight;
        }
    }
    any
}

/// Parses a weight: `q=0.5` is 500. One that cannot be read counts as none given.
fn thousandths(weight: &str) -> u32 {
    let Some(("q" | "Q", number)) = weight.split_once('=') else {
        return 1_000;
    };
    let (whole, part) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
    let part = format!("{part:0<3}");
    match (whole, part.get(..3).map(str::parse::<u32>)) {
        ("0", Some(Ok(part))) => part,
        _ => 1_000,
    }
}

/// Bytes that do not change, and their codings as they are first asked for.
#[derive(Debug)]
pub(super) struct Coded {
    plain: Bytes,
    gzip: OnceLock<Bytes>,
    brotli: OnceLock<Bytes>,
}

impl Coded {
    pub(super) fn new(plain: Bytes) -> Self {
        Self {
            plain,
            gzip: OnceLock::new(),
            brotli: OnceLock::new(),
        }
    }

    pub(super) fn bytes(&self, coding: Coding) -> Bytes {
        let known = match coding {
            Coding::Identity => return self.plain.clone(),
            Coding::Gzip => &self.gzip,
            Coding::Brotli => &self.brotli,
        };
        let write = || coding.write(&self.plain, MUCH_EFFORT);
        known.get_or_init(write).clone()
    }
}

/// Encodes an answer that is text, is complete, and is worth it; returns any other as it is.
pub(super) async fn of_answer(coding: Coding, response: Response) -> Response {
    if !is_worth_it(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    coding.tell(&mut parts.headers);
    if coding == Coding::Identity {
        return Response::from_parts(parts, body);
    }
    // A body of a known size is in memory: this neither waits nor fails.
    let plain = body.collect().await.map(Collected::to_bytes);
    let coded = coding.write(&plain.unwrap_or_default(), LITTLE_EFFORT);
    Response::from_parts(parts, Body::from(coded))
}

fn is_worth_it(response: &Response) -> bool {
    let headers = response.headers();
    let media = headers.get(header::CONTENT_TYPE);
    let media = media.and_then(|media| media.to_str().ok());
    let is_text = media.is_some_and(|media| {
        media.starts_with("application/json")
            || media.starts_with("application/openmetrics-text")
            || (media.starts_with("text/") && media != "text/event-stream")
    });
    let size = response.body().size_hint().exact();
    is_text
        && !headers.contains_key(header::VARY)
        && size.is_some_and(|size| (CODED_BYTES_MIN..=CODED_ANSWER_BYTES_MAX).contains(&size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_accepted_coding_is_taken() {
        let cases = [
            ("", Coding::Identity),
            ("gzip, deflate, br, zstd", Coding::Brotli),
            ("deflate, gzip", Coding::Gzip),
            ("br;q=0, gzip", Coding::Gzip),
            ("br;q=0.5, GZIP;q=0.8", Coding::Gzip),
            ("br;q=0.000, gzip;q=0", Coding::Identity),
            ("*", Coding::Brotli),
            ("*;q=0.1, br;q=0", Coding::Gzip),
            ("identity", Coding::Identity),
            ("gzipped", Coding::Identity),
        ];
        for (accepted, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, accepted.parse().unwrap());
            assert_eq!(Coding::accepted(&headers), expected, "{accepted}");
        }
        assert_eq!(Coding::accepted(&HeaderMap::new()), Coding::Identity);
    }
}
