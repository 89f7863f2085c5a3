//! What a connection sends next: the hook for flows such as hold, then confirm.

use std::net::SocketAddr;

/// Makes the requests of one connection, in order.
pub(crate) trait RequestMaker: Send {
    /// The whole next request, HTTP/1.1 with keep-alive, in the maker's own buffer; None ends this
    /// connection's part. In the hot loop: it should not allocate.
    fn next(&mut self, turn: Turn<'_>) -> Option<&[u8]>;
}

/// Gives each connection (0, 1, ..) its maker.
pub(crate) type Makers = Box<dyn Fn(usize) -> Box<dyn RequestMaker> + Send>;

/// Where a connection stands.
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
    /// The status code.
    pub(crate) status: u16,
    /// The whole body.
    pub(crate) body: &'a [u8],
}

/// Sends the same bytes for ever.
#[derive(Clone, Debug)]
pub(crate) struct Fixed(pub(crate) Vec<u8>);

impl RequestMaker for Fixed {
    fn next(&mut self, _turn: Turn<'_>) -> Option<&[u8]> {
        Some(&self.0)
    }
}

/// The bytes of a POST of `json` to `path`.
pub(crate) fn post_json(address: SocketAddr, path: &str, json: &str) -> Vec<u8> {
    let length = json.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{json}"
    )
    .into_bytes()
}
