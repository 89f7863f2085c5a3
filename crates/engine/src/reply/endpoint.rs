//! Webhook endpoints as the API shows them.

use serde::Serialize;

use super::{ReplyKind, Rfc3339, StoredReply, stored_reply};
use crate::webhook::{Endpoint, MessageKind};

/// An endpoint, without its secret.
#[derive(Serialize)]
pub struct EndpointBody<'a> {
    id: String,
    url: &'a str,
    types: Vec<&'static str>,
    created_at: Rfc3339,
    rotated_at: Option<Rfc3339>,
    disabled_at: Option<Rfc3339>,
    quiet_until: Option<Rfc3339>,
}

impl<'a> EndpointBody<'a> {
    /// Shows `endpoint`.
    pub fn new(endpoint: &'a Endpoint) -> Self {
        Self {
            id: endpoint.id.to_string(),
            url: &endpoint.url,
            types: endpoint.kinds.iter().map(MessageKind::as_str).collect(),
            created_at: Rfc3339(endpoint.created_at),
            rotated_at: endpoint.rotated_at.map(Rfc3339),
            disabled_at: endpoint.disabled_at.map(Rfc3339),
            quiet_until: endpoint.quiet_until.map(Rfc3339),
        }
    }
}

/// Builds the answer to the creation of an endpoint; its secret is derived anew each time.
pub(crate) fn endpoint(endpoint: &Endpoint) -> StoredReply {
    let body = EndpointBody::new(endpoint);
    stored_reply(ReplyKind::Endpoint, *endpoint.id.bytes(), &body)
}
