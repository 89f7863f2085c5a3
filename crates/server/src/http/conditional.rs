//! `If-None-Match`: whether the caller already has the answer (RFC 9110, 13.1.2).

use axum::http::{HeaderMap, HeaderValue, header};

use super::headers::listed;

/// Tells whether the caller names this version, or any. The comparison is weak: encodings of one
/// version count as the same.
pub(super) fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let named = listed(headers, header::IF_NONE_MATCH);
    let mut named = named.map(|named| named.trim().as_bytes());
    named.any(|named| named == b"*" || opaque(named) == opaque(tag.as_bytes()))
}

/// Returns the tag without its mark of weakness.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_weakly() {
        let cases = [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", W/\"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("w/\"a\"", false),
            ("a", false),
            ("", false),
        ];
        for tag in ["\"a\"", "W/\"a\""] {
            for (named, expected) in cases {
                let mut headers = HeaderMap::new();
                headers.append(header::IF_NONE_MATCH, HeaderValue::from_static("\"z\""));
                headers.append(header::IF_NONE_MATCH, named.parse().unwrap());
                let tag = HeaderValue::from_static(tag);
                assert_eq!(is_known(&headers, &tag), expected, "{named}");
            }
        }
        let tag = HeaderValue::from_static("\"a\"");
        assert!(!is_known(&HeaderMap::new(), &tag));
    }
}
