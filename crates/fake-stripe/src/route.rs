//! The calls of the API.

/// A call of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// `POST /v1/payment_intents`
    CreateIntent,
    /// `GET /v1/payment_intents/:id`
    RetrieveIntent,
    /// `POST /v1/payment_intents/:id/confirm`: what a page's card form does.
    Confirm,
    /// `POST /v1/payment_intents/:id/capture`
    Capture,
    /// `POST /v1/payment_intents/:id/cancel`
    Cancel,
    /// `POST /v1/refunds`
    CreateRefund,
    /// `GET /v1/refunds/:id`
    RetrieveRefund,
    /// `GET /v1/refunds`
    ListRefunds,
    /// `GET /v1/events`
    ListEvents,
    /// `POST /fake/intents/:id/authenticate`: the bank's page. Stripe has no such call.
    Authenticate,
}

impl Route {
    /// Parses a request: its call, and the id in its path or an empty text; `None` if unknown.
    pub(super) fn of<'a>(method: &str, path: &'a str) -> Option<(Self, &'a str)> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        Some(match (method, parts.as_slice()) {
            ("POST", ["v1", "payment_intents"]) => (Self::CreateIntent, ""),
            ("GET", ["v1", "payment_intents", id]) => (Self::RetrieveIntent, id),
            ("POST", ["v1", "payment_intents", id, "confirm"]) => (Self::Confirm, id),
            ("POST", ["v1", "payment_intents", id, "capture"]) => (Self::Capture, id),
            ("POST", ["v1", "payment_intents", id, "cancel"]) => (Self::Cancel, id),
            ("POST", ["v1", "refunds"]) => (Self::CreateRefund, ""),
            ("GET", ["v1", "refunds"]) => (Self::ListRefunds, ""),
            ("GET", ["v1", "refunds", id]) => (Self::RetrieveRefund, id),
            ("GET", ["v1", "events"]) => (Self::ListEvents, ""),
            ("POST", ["fake", "intents", id, "authenticate"]) => (Self::Authenticate, id),
            _ => return None,
        })
    }

    /// Tells whether it changes the account; only then its idempotency key is used.
    pub(super) const fn has_effect(self) -> bool {
        !matches!(
            self,
            Self::RetrieveIntent | Self::RetrieveRefund | Self::ListRefunds | Self::ListEvents
        )
    }

    /// Tells whether a browser may make it, with the intent's client secret.
    pub(super) const fn is_for_browsers(self) -> bool {
        matches!(
            self,
            Self::Confirm | Self::RetrieveIntent | Self::Authenticate
        )
    }
}
