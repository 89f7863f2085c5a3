//! The host that a request names. HTTP/1.1 wants exactly one, and a valid one (RFC 9112, 3.2): where a
//! proxy and this server understood different hosts, one would guard what the other serves.

use axum::http::{Request, Version, header};

/// Tells whether the request names its host as its HTTP version asks.
pub(crate) fn is_named<B>(request: &Request<B>) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => is_host(host.as_bytes()),
        (None, None) => request.version() != Version::HTTP_11,
        (_, Some(_)) => false,
    }
}

/// Tells whether the text is `host [":" port]`. An empty one asks for no host in particular.
fn is_host(text: &[u8]) -> bool {
    let (host, port) = match text.iter().rposition(|byte| *byte == b':') {
        Some(colon) if !text.ends_with(b"]") => text.split_at(colon),
        Some(_) | None => (text, &b""[..]),
    };
    let is_port = port.iter().skip(1).all(u8::is_ascii_digit);
    let inner = host
        .strip_prefix(b"[")
        .and_then(|host| host.strip_suffix(b"]"));
    let is_name = match inner {
        Some(address) => address
            .iter()
            .all(|byte| is_of_name(*byte) || *byte == b':'),
        None => host.iter().all(|byte| is_of_name(*byte)),
    };
    is_name && is_port
}

/// Tells whether a byte may be in a registered name or an address (RFC 3986, 3.2.2).
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_addresses_with_or_without_a_port() {
        for host in [
            "",
            "a",
            "shop.example:8080",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:80",
            "a:",
        ] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "a b/c", "a@b", "a:b", "a:1:2", "[::1", "::1", "a/b", "a b", "a?b", "\u{e9}",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }
}
