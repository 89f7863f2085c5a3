//! An operation of the API: its route, and what the description says of it. Each module of handlers has a
//! function `routes` that adds its operations to the table, each with its handler.

use soldonce_core::words;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::kinds::Kind;
use super::route::{Admission, BodySize, Parameter, Route, Verb};

pub(super) const HOLD_SECRET: (&str, &str) = (
    "Hold-Secret",
    "Proves that the hold is the caller's own; not needed by the caller that made it",
);
pub(super) const BOOKING_SECRET: (&str, &str) = (
    "Booking-Secret",
    "Opens the booking for every caller that has it: the `secret` of an answer that was about it alone",
);
pub(super) const IF_NONE_MATCH: (&str, &str) =
    ("If-None-Match", "The `ETag` of the answer that is known");
pub(super) const AFTER: Parameter = ("after", "The `next` of the page before", "string");
pub(super) const DIGEST: Parameter = (
    "digest",
    "The `digest` that came with that `seq`; a reset if another commit has the number now",
    "string",
);
pub(super) const LIMIT: Parameter = ("limit", "Most entries on the page, 1 to 100", "integer");

/// A route, and what the description says of it.
pub(super) struct Operation {
    pub(super) route: Route,
    /// Set by the table.
    pub(super) tag: Tag,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) body: Option<Body>,
    pub(super) answers: Vec<Answer>,
    /// Its own; those that follow from the route come on top.
    pub(super) refusals: &'static [&'static [&'static Kind]],
    pub(super) keyed: Keyed,
    /// Name and meaning.
    pub(super) headers: &'static [(&'static str, &'static str)],
}

pub(super) struct Body {
    pub(super) schema: SchemaOf,
    /// JSON.
    pub(super) example: &'static str,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) content: Content,
}

pub(super) enum Content {
    /// JSON with the server's time.
    Timed(SchemaOf),
    Json(SchemaOf),
    /// A text of this media type.
    Media(&'static str),
    /// Server-sent events of these types, each with this as its data.
    Events(&'static [&'static str], SchemaOf),
    Nothing,
}

#[derive(Clone, Copy)]
pub(super) struct SchemaOf {
    pub(super) name: fn() -> String,
    /// Adds it, with those that it refers to.
    pub(super) add: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl SchemaOf {
    pub(super) fn new<T: ToSchema + PartialSchema>() -> Self {
        Self {
            name: || T::name().into_owned(),
            add: |found| {
                T::schemas(found);
                found.push((T::name().into_owned(), T::schema()));
            },
        }
    }
}

/// Whether an operation takes an idempotency key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyed {
    No,
    Optional,
    Required,
    /// It names what is made without an id.
    Naming,
}

words! {
    /// The chapter of the description.
    pub(super) Tag:
    Events = "events",
    Seats = "seats",
    Holds = "holds",
    Bookings = "bookings",
    Leases = "leases",
    Access = "access",
    Webhooks = "webhooks",
    System = "system",
}

impl Tag {
    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::Events => "Performances, sales, drops: what is sold",
            Self::Seats => "The chart, the seats as they are, and their changes",
            Self::Holds => "Exclusive, timed claims",
            Self::Bookings => "Sales",
            Self::Leases => "Timed exclusive claims on names, with fencing tokens",
            Self::Access => "Keys and sessions",
            Self::Webhooks => {
                "Where news of holds and bookings is posted, by the convention of Standard Webhooks"
            }
            Self::System => "Health, metrics, pages",
        }
    }
}

pub(super) fn get(path: &'static str, admission: Admission) -> Operation {
    Operation::new(Route::new(Verb::Get, path, admission))
}

pub(super) fn post(path: &'static str, admission: Admission) -> Operation {
    Operation::new(Route::new(Verb::Post, path, admission))
}

pub(super) fn patch(path: &'static str, admission: Admission) -> Operation {
    Operation::new(Route::new(Verb::Patch, path, admission))
}

pub(super) fn delete(path: &'static str, admission: Admission) -> Operation {
    Operation::new(Route::new(Verb::Delete, path, admission))
}

impl Operation {
    const fn new(route: Route) -> Self {
        Self {
            route,
            tag: Tag::System,
            id: "",
            summary: "",
            body: None,
            answers: Vec::new(),
            refusals: &[],
            keyed: Keyed::No,
            headers: &[],
        }
    }

    pub(super) const fn id(mut self, id: &'static str) -> Self {
        self.id = id;
        self
    }

    pub(super) const fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Takes a body, of which this is an example.
    pub(super) fn takes<T: ToSchema>(mut self, example: &'static str) -> Self {
        self.route.needs_body = true;
        self.may_take::<T>(example)
    }

    /// Takes a body, or none: all its fields may be left out.
    pub(super) fn may_take<T: ToSchema>(mut self, example: &'static str) -> Self {
        let schema = SchemaOf::new::<T>();
        self.body = Some(Body { schema, example });
        self
    }

    /// Sets how large its body may be.
    pub(super) const fn sized(mut self, body: BodySize) -> Self {
        self.route.body = body;
        self
    }

    /// Says that it may answer late because it was asked to.
    pub(super) const fn waits(mut self) -> Self {
        self.route.waits = true;
        self
    }

    pub(super) const fn query(mut self, query: &'static [Parameter]) -> Self {
        self.route.query = query;
        self
    }

    pub(super) const fn headers(
        mut self,
        headers: &'static [(&'static str, &'static str)],
    ) -> Self {
        self.headers = headers;
        self
    }

    pub(super) const fn keyed(mut self, keyed: Keyed) -> Self {
        self.keyed = keyed;
        self
    }

    pub(super) const fn refuses(mut self, refusals: &'static [&'static [&'static Kind]]) -> Self {
        self.refusals = refusals;
        self
    }

    fn answers(mut self, status: u16, about: &'static str, content: Content) -> Self {
        self.answers.push(Answer {
            status,
            about,
            content,
        });
        self
    }

    /// Answers with JSON that ends with the server's time.
    pub(super) fn gives<T: ToSchema>(self, status: u16, about: &'static str) -> Self {
        self.answers(status, about, Content::Timed(SchemaOf::new::<T>()))
    }

    /// Answers with JSON that does not say the server's time.
    pub(super) fn gives_bare<T: ToSchema>(self, about: &'static str) -> Self {
        self.answers(200, about, Content::Json(SchemaOf::new::<T>()))
    }

    /// Answers with a text of this media type.
    pub(super) fn sends(self, media: &'static str, about: &'static str) -> Self {
        self.answers(200, about, Content::Media(media))
    }

    /// Answers with server-sent events of these types, each with this as its data.
    pub(super) fn streams<T: ToSchema>(
        self,
        types: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        self.answers(200, about, Content::Events(types, SchemaOf::new::<T>()))
    }

    /// Answers with a file of any media type.
    pub(super) fn sends_file(self) -> Self {
        self.answers(200, "The file", Content::Nothing)
            .or_unchanged()
    }

    /// Answers without a body where the caller knows the answer.
    pub(super) fn or_unchanged(self) -> Self {
        self.answers(304, "Nothing new", Content::Nothing)
    }
}
