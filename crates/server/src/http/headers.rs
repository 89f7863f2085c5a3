//! Fields of a head that are lists.

use axum::http::{HeaderMap, HeaderName};

/// Lists what a header field has between commas, on all of its lines.
pub(super) fn listed(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(','))
}
