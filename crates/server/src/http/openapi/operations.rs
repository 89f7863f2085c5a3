//! An operation as the API description tells it, and the words that several share.

use super::super::kinds::Kind;
use super::super::route::{Admission, BodySize, Route, Verb};

/// A route and what the API description tells of it.
pub(super) struct Operation {
    pub(super) route: Route,
    pub(super) tag: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    /// The schema of its body.
    pub(super) request: Option<&'static str>,
    pub(super) answers: &'static [(u16, &'static str, Content)],
    /// Its own; those that every such operation has come on top.
    pub(super) refusals: &'static [&'static [&'static Kind]],
    pub(super) keyed: Keyed,
    /// Name, meaning and type of query values.
    pub(super) query: &'static [(&'static str, &'static str, &'static str)],
    pub(super) headers: &'static [(&'static str, &'static str)],
}

/// What an answer is.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// JSON of this schema.
    Json(&'static str),
    /// A text of this media type.
    Media(&'static str),
    Nothing,
}

/// Whether the route takes an idempotency key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyed {
    No,
    Optional,
    Required,
}

pub(super) const KEYED: &str = "1 to 255 visible ASCII characters. The same key with the same path and body is answered \
     with the first answer, marked `Idempotency-Replayed: true`, for 24 hours; of a refund or a \
     cancellation for as long as the booking";

/// Bodies of which every field may be left out may be left out themselves.
pub(super) const MAY_BE_EMPTY: [&str; 8] = [
    "AbandonRequest",
    "CallOffRequest",
    "CancelRequest",
    "CheckoutRequest",
    "ConfirmRequest",
    "ExtendRequest",
    "RevokeRequest",
    "SessionRequest",
];

pub(super) const TAGS: [(&str, &str); 7] = [
    ("events", "Performances, sales, drops: what is sold"),
    (
        "seats",
        "The chart, the seats as they are, and their changes",
    ),
    ("holds", "Exclusive, timed claims"),
    ("bookings", "Sales"),
    ("access", "Keys and sessions"),
    (
        "webhooks",
        "Where news of holds and bookings is posted, by the convention of Standard Webhooks",
    ),
    ("system", "Health, metrics, pages"),
];

/// What a segment of a path names.
pub(super) fn about_segment(name: &str) -> &'static str {
    match name {
        "event" => "The event's id",
        "hold" => "The hold's id, `hld_..`",
        "booking" => "The booking's id, `bkg_..`",
        "unit" => "A seat's id, or a place's such as `floor.17`",
        "key" => "The key's id, `cal_..`",
        "endpoint" => "The endpoint's id, `whe_..`",
        "message" => "The message's id, `msg_..`",
        "code" => "A problem's code, with dashes",
        _ => "A file",
    }
}

pub(super) const fn operation(
    verb: Verb,
    path: &'static str,
    admission: Admission,
    tag: &'static str,
    words: (&'static str, &'static str),
) -> Operation {
    Operation {
        route: Route {
            verb,
            path,
            admission,
            body: BodySize::Usual,
        },
        tag,
        id: words.0,
        summary: words.1,
        request: None,
        answers: &[],
        refusals: &[],
        keyed: Keyed::No,
        query: &[],
        headers: &[],
    }
}

impl Operation {
    pub(super) const fn takes(mut self, schema: &'static str) -> Self {
        self.request = Some(schema);
        self
    }

    pub(super) const fn sized(mut self, body: BodySize) -> Self {
        self.route.body = body;
        self
    }

    pub(super) const fn answers(
        mut self,
        answers: &'static [(u16, &'static str, Content)],
    ) -> Self {
        self.answers = answers;
        self
    }

    pub(super) const fn refuses(mut self, refusals: &'static [&'static [&'static Kind]]) -> Self {
        self.refusals = refusals;
        self
    }

    pub(super) const fn keyed(mut self, keyed: Keyed) -> Self {
        self.keyed = keyed;
        self
    }

    pub(super) const fn query(
        mut self,
        query: &'static [(&'static str, &'static str, &'static str)],
    ) -> Self {
        self.query = query;
        self
    }

    pub(super) const fn headers(
        mut self,
        headers: &'static [(&'static str, &'static str)],
    ) -> Self {
        self.headers = headers;
        self
    }
}
