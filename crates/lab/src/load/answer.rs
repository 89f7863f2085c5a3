//! Reads the head of an HTTP/1.1 answer. Anything unexpected is an error, never a guess.

use httparse::{EMPTY_HEADER, Response, Status};

use crate::kit::LoadError;
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_FIELDS_MAX, ANSWER_HEAD_BYTES_MAX};

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

/// Reads the head at the start of `bytes`; None if it is incomplete.
pub(crate) fn read_head(bytes: &[u8]) -> Result<Option<Head>, LoadError> {
    let mut fields = [EMPTY_HEADER; ANSWER_FIELDS_MAX];
    let mut response = Response::new(&mut fields);
    let length = match response.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if bytes.len() >= ANSWER_HEAD_BYTES_MAX => {
            return Err(LoadError::TooLarge);
        }
        Ok(Status::Partial) => return Ok(None),
        Err(_) => return Err(LoadError::NotHttp),
    };
    let is_final = |status: &u16| *status >= 200 && response.version == Some(1);
    let status = response.code.filter(is_final).ok_or(LoadError::NotHttp)?;
    let field = |name: &str| {
        let mut fields = response.headers.iter();
        let found = fields.find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| field.value.trim_ascii())
    };
    let body_length = match (status, field("content-length")) {
        _ if field("transfer-encoding").is_some() => return Err(LoadError::Chunked),
        (204 | 304, _) => 0,
        (_, Some(length)) => read_length(length)?,
        (_, None) => return Err(LoadError::Chunked),
    };
    Ok(Some(Head {
        status,
        length,
        body_length,
        closes: field("connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close")),
    }))
}

fn read_length(digits: &[u8]) -> Result<usize, LoadError> {
    let digits = std::str::from_utf8(digits).ok();
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(length) if length <= ANSWER_BYTES_MAX => Ok(length),
        Some(_) => Err(LoadError::TooLarge),
        None => Err(LoadError::NotHttp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] =
        b"HTTP/1.1 201 Created\r\nContent-Type: a\r\nContent-Length:  5\r\n\r\nhello";

    #[test]
    fn a_head_is_read_once_it_is_complete_and_not_before() {
        let complete = PLAIN.len() - 5;
        for length in 0..complete {
            assert_eq!(read_head(&PLAIN[..length]), Ok(None), "{length} bytes");
        }
        let head = Head {
            status: 201,
            length: complete,
            body_length: 5,
            closes: false,
        };
        assert_eq!(read_head(PLAIN), Ok(Some(head)));
    }

    #[test]
    fn an_unexpected_head_is_an_error() {
        let endless = format!(
            "HTTP/1.1 200 OK\r\na: {}",
            "x".repeat(ANSWER_HEAD_BYTES_MAX)
        );
        let cases: [(&str, LoadError); 9] = [
            ("HTTP/1.0 200 OK\r\n\r\n", LoadError::NotHttp),
            ("HTTP/1.1 20\r\n\r\n", LoadError::NotHttp),
            ("xxxxxxxx", LoadError::NotHttp),
            ("HTTP/1.1 100 Continue\r\n\r\n", LoadError::NotHttp),
            ("HTTP/1.1 200 OK\r\n\r\n", LoadError::Chunked),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
                LoadError::Chunked,
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
                LoadError::NotHttp,
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
                LoadError::TooLarge,
            ),
            (&endless, LoadError::TooLarge),
        ];
        for (bytes, error) in cases {
            assert_eq!(read_head(bytes.as_bytes()), Err(error), "{bytes:.60}");
        }
    }

    #[test]
    fn an_answer_without_body_and_a_close_are_seen() {
        let head = read_head(b"HTTP/1.1 204 No Content\r\nconnection: CLOSE\r\n\r\n");
        let head = head.unwrap().unwrap();
        assert_eq!((head.body_length, head.closes), (0, true));
    }
}
