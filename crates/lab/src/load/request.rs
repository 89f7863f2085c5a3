//! What a connection sends next, and the bytes of requests.

use std::fmt::Arguments;
use std::io::Write as _;
use std::net::SocketAddr;

/// Writes the next whole request of one connection, HTTP/1.1 with keep-alive, to the empty buffer; false
/// ends this connection's part.
pub(crate) type Maker = Box<dyn FnMut(Turn<'_>, &mut Vec<u8>) -> bool + Send>;

/// Gives each connection (0, 1, ..) its maker.
pub(crate) type Makers = Box<dyn Fn(usize) -> Maker + Send>;

/// The state of a connection before its next request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    /// How many requests this connection sent before.
    pub(crate) request: u64,
    /// The answer to the last one; None before the first and after a transport error.
    pub(crate) last: Option<Answer<'a>>,
}

/// An answer as a maker sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

/// A hold of one seat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) event: Arguments<'a>,
    /// None: the session's own.
    pub(crate) holder: Option<Arguments<'a>>,
    pub(crate) seat: Arguments<'a>,
}

/// Builds a maker that sends the same bytes each time.
pub(crate) fn always(bytes: Vec<u8>) -> Maker {
    Box::new(move |_, buffer| {
        buffer.extend_from_slice(&bytes);
        true
    })
}

/// Writes requests to one server with one key.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    fields: String,
}

impl Requests {
    pub(crate) fn new(address: SocketAddr, key: &str) -> Self {
        let fields = format!("host: {address}\r\nauthorization: Bearer {key}\r\n");
        Self { fields }
    }

    /// Writes a POST of a JSON body.
    pub(crate) fn post(&self, buffer: &mut Vec<u8>, path: Arguments<'_>, body: Arguments<'_>) {
        self.post_with(buffer, path, format_args!(""), body);
    }

    /// Writes a POST with an idempotency key.
    pub(crate) fn post_once(
        &self,
        buffer: &mut Vec<u8>,
        path: Arguments<'_>,
        key: Arguments<'_>,
        body: Arguments<'_>,
    ) {
        let more = format_args!("idempotency-key: {key}\r\n");
        self.post_with(buffer, path, more, body);
    }

    fn post_with(
        &self,
        buffer: &mut Vec<u8>,
        path: Arguments<'_>,
        more: Arguments<'_>,
        body: Arguments<'_>,
    ) {
        let (fields, body) = (&self.fields, body.to_string());
        let length = body.len();
        // Writing to memory never fails.
        write!(
            buffer,
            "POST {path} HTTP/1.1\r\n{fields}content-type: application/json\r\n{more}\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap_or_default();
    }

    /// Writes a request without a body.
    pub(crate) fn bare(&self, buffer: &mut Vec<u8>, method: &str, path: Arguments<'_>) {
        let fields = &self.fields;
        write!(buffer, "{method} {path} HTTP/1.1\r\n{fields}\r\n").unwrap_or_default();
    }
}

/// Returns the id in the JSON of a new hold, without parsing the rest: our own answers only.
pub(crate) fn hold_id(answer: Option<Answer<'_>>) -> Option<&str> {
    let created = answer.filter(|answer| answer.status == 201)?;
    let text = std::str::from_utf8(created.body).ok()?;
    let (_, after) = text.split_once(r#""id":""#)?;
    Some(after.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_hold_is_found_in_an_answer() {
        let answer = |body| Some(Answer { status: 201, body });
        assert_eq!(
            hold_id(answer(br#"{"id":"hld_1","event":"x"}"#)),
            Some("hld_1")
        );
        assert_eq!(hold_id(answer(b"{}")), None);
        assert_eq!(hold_id(None), None);
    }

    #[test]
    fn a_request_says_its_length() {
        let requests = Requests::new(SocketAddr::from(([127, 0, 0, 1], 1)), "k");
        let (path, key, body) = (format_args!("/x"), format_args!("b"), format_args!("{{}}"));
        let mut buffer = Vec::new();
        requests.post_once(&mut buffer, path, key, body);
        let text = String::from_utf8(buffer).unwrap();
        let end = "idempotency-key: b\r\ncontent-length: 2\r\n\r\n{}";
        assert!(text.ends_with(end), "{text}");
        assert!(text.contains("authorization: Bearer k\r\n"), "{text}");
    }
}
