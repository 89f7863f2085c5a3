//! Reads the head of an HTTP/1.1 answer, as much of it as the load needs, and no laxer for that:
//! what it does not understand is an error, never a guess.

use super::report::LoadError;
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_HEAD_BYTES_MAX};

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code, 200..=999: informational answers are not expected.
    pub(crate) status: u16,
    /// Bytes of head, with the empty line that ends it.
    pub(crate) length: usize,
    /// Bytes of body after it.
    pub(crate) body_length: usize,
    /// The server will close the connection after this answer.
    pub(crate) closes: bool,
}

/// Reads the head at the start of `bytes`; None if it is not all there.
///
/// # Errors
/// `NotHttp` when it is no head; `Chunked` when the body's length is not given beforehand;
/// `TooLarge` beyond the bounds.
pub(crate) fn read_head(bytes: &[u8]) -> Result<Option<Head>, LoadError> {
    let mut lines = Lines {
        rest: bytes,
        taken: 0,
    };
    let Some(first) = lines.next_line() else {
        return unfinished(bytes);
    };
    let status = read_status(first)?;
    let mut body_length = None;
    let mut closes = false;
    loop {
        let Some(line) = lines.next_line() else {
            return unfinished(bytes);
        };
        if line.is_empty() {
            break;
        }
        // Only the fields that begin so are looked at; most lines end here.
        match line.first() {
            Some(b'c' | b'C' | b't' | b'T') => {}
            _ => continue,
        }
        if let Some(value) = value_of(line, b"content-length") {
            body_length = Some(read_number(value)?);
        } else if value_of(line, b"transfer-encoding").is_some() {
            return Err(LoadError::Chunked);
        } else if let Some(value) = value_of(line, b"connection") {
            closes |= value.eq_ignore_ascii_case(b"close");
        }
    }
    let body_length = match (body_length, status) {
        (_, 204 | 304) => 0,
        (Some(length), _) => length,
        (None, _) => return Err(LoadError::Chunked),
    };
    Ok(Some(Head {
        status,
        length: lines.taken,
        body_length,
        closes,
    }))
}

fn unfinished(bytes: &[u8]) -> Result<Option<Head>, LoadError> {
    if bytes.len() >= ANSWER_HEAD_BYTES_MAX {
        Err(LoadError::TooLarge)
    } else {
        Ok(None)
    }
}

fn read_status(line: &[u8]) -> Result<u16, LoadError> {
    let digits = line
        .strip_prefix(b"HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    let status = std::str::from_utf8(digits.ok_or(LoadError::NotHttp)?)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .ok_or(LoadError::NotHttp)?;
    if status < 200 {
        Err(LoadError::NotHttp)
    } else {
        Ok(status)
    }
}

fn read_number(value: &[u8]) -> Result<usize, LoadError> {
    let number = std::str::from_utf8(value)
        .ok()
        .and_then(|digits| digits.parse().ok());
    match number {
        Some(number) if number <= ANSWER_BYTES_MAX => Ok(number),
        Some(_) => Err(LoadError::TooLarge),
        None => Err(LoadError::NotHttp),
    }
}

/// The value of a field line, without spaces around, if the line has that name.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (own, rest) = line.split_at_checked(name.len())?;
    let value = rest.strip_prefix(b":")?;
    own.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

struct Lines<'a> {
    rest: &'a [u8],
    taken: usize,
}

impl<'a> Lines<'a> {
    /// The next line without its end; None if it has none yet.
    fn next_line(&mut self) -> Option<&'a [u8]> {
        let at = self.rest.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = self.rest.split_at_checked(at + 1)?;
        self.rest = rest;
        self.taken += line.len();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] =
        b"HTTP/1.1 201 Created\r\nContent-Type: a\r\nContent-Length:  5\r\n\r\nhello";

    #[test]
    fn a_head_is_read_once_it_is_whole_and_not_before() {
        let whole = PLAIN.len() - 5;
        for length in 0..whole {
            assert_eq!(read_head(&PLAIN[..length]), Ok(None), "{length} bytes");
        }
        let head = Head {
            status: 201,
            length: whole,
            body_length: 5,
            closes: false,
        };
        assert_eq!(read_head(PLAIN), Ok(Some(head)));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let cases: [(&[u8], LoadError); 7] = [
            (b"HTTP/1.0 200 OK\r\n\r\n", LoadError::NotHttp),
            (b"HTTP/1.1 20\r\n\r\n", LoadError::NotHttp),
            (b"HTTP/1.1 100 Continue\r\n\r\n", LoadError::NotHttp),
            (b"HTTP/1.1 200 OK\r\n\r\n", LoadError::Chunked),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
                LoadError::Chunked,
            ),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
                LoadError::NotHttp,
            ),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
                LoadError::TooLarge,
            ),
        ];
        for (bytes, error) in cases {
            assert_eq!(
                read_head(bytes),
                Err(error),
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
        assert_eq!(
            read_head(&[b'x'; ANSWER_HEAD_BYTES_MAX]),
            Err(LoadError::TooLarge)
        );
    }

    #[test]
    fn an_answer_without_body_and_a_close_are_seen() {
        let head = read_head(b"HTTP/1.1 204 No Content\r\nconnection: CLOSE\r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!((head.body_length, head.closes), (0, true));
    }
}
