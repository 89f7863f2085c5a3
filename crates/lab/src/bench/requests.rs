//! The bytes of requests, with a key in them, written into buffers that are kept.

use std::fmt::{Arguments, Write as _};
use std::io::Write as _;
use std::net::SocketAddr;

use super::hall::{FreshSeat, push_row_label};

/// Writes requests with a key into buffers that it keeps.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    fields: String,
    body: String,
    whole: Vec<u8>,
}

impl Requests {
    pub(super) fn new(address: SocketAddr, key: &str) -> Self {
        let fields = format!("host: {address}\r\nauthorization: Bearer {key}\r\n");
        Self {
            fields,
            body: String::new(),
            whole: Vec::new(),
        }
    }

    /// A POST of a JSON body; `more` are further header fields, each with its line end.
    pub(super) fn post(
        &mut self,
        path: Arguments<'_>,
        more: Arguments<'_>,
        body: Arguments<'_>,
    ) -> &[u8] {
        self.body.clear();
        self.whole.clear();
        // Writing to memory never fails.
        self.body.write_fmt(body).unwrap_or_default();
        let (fields, body, length) = (&self.fields, &self.body, self.body.len());
        write!(
            self.whole,
            "POST {path} HTTP/1.1\r\n{fields}content-type: application/json\r\n{more}\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap_or_default();
        &self.whole
    }

    /// A GET.
    pub(super) fn get(&mut self, path: Arguments<'_>) -> &[u8] {
        self.whole.clear();
        let fields = &self.fields;
        write!(self.whole, "GET {path} HTTP/1.1\r\n{fields}\r\n").unwrap_or_default();
        &self.whole
    }

    /// A DELETE.
    pub(super) fn delete(&mut self, path: Arguments<'_>) -> &[u8] {
        self.whole.clear();
        let fields = &self.fields;
        write!(self.whole, "DELETE {path} HTTP/1.1\r\n{fields}\r\n").unwrap_or_default();
        &self.whole
    }

    /// A hold of one fresh seat for a holder of its own.
    pub(super) fn hold(&mut self, prefix: &str, seat: FreshSeat) -> &[u8] {
        let mut label = String::new();
        push_row_label(&mut label, seat.row);
        let FreshSeat {
            event,
            seat,
            number,
            ..
        } = seat;
        self.post(
            format_args!("/v1/events/{prefix}-{event}/holds"),
            format_args!(""),
            format_args!(r#"{{"holder":"user-{number}","units":[{{"seat":"{label}-{seat}"}}]}}"#),
        )
    }
}

/// The text of a JSON object's first field `name`, without parsing the rest: our own answers only.
pub(super) fn text_field<'a>(body: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, after) = text.split_once(name)?;
    let (value, _) = after.strip_prefix("\":\"")?.split_once('"')?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_in_an_answer() {
        let body = br#"{"id":"hld_1","event":"x"}"#;
        assert_eq!(text_field(body, "\"id"), Some("hld_1"));
        assert_eq!(text_field(b"{}", "\"id"), None);
    }

    #[test]
    fn a_request_says_its_length() {
        let mut requests = Requests::new(SocketAddr::from(([127, 0, 0, 1], 1)), "k");
        let post = requests.post(
            format_args!("/x"),
            format_args!("a: b\r\n"),
            format_args!("{{}}"),
        );
        let text = std::str::from_utf8(post).unwrap();
        assert!(
            text.ends_with("a: b\r\ncontent-length: 2\r\n\r\n{}"),
            "{text}"
        );
        assert!(text.contains("authorization: Bearer k\r\n"), "{text}");
    }
}
