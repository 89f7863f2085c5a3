//! A route: its method and path, who may use it, and what may be sent.

use axum::http::Method;
use axum::routing::MethodFilter;
use soldonce_core::words;

use crate::limits::{BODY_BYTES_MAX, CHART_BODY_BYTES_MAX, NOTICE_BYTES_MAX, UNITS_BODY_BYTES_MAX};

words! {
    /// A method that a route may have.
    pub(super) Verb:
    Get = "GET",
    Post = "POST",
    Patch = "PATCH",
    Delete = "DELETE",
    /// All that no route takes.
    Any = "ANY",
}

impl Verb {
    pub(super) const fn method(self) -> Method {
        match self {
            Self::Get | Self::Any => Method::GET,
            Self::Post => Method::POST,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }

    pub(super) fn filter(self) -> MethodFilter {
        MethodFilter::try_from(self.method()).unwrap_or(MethodFilter::GET)
    }
}

words! {
    /// Who may use a route. Whether a caller may touch the thing it names is the engine's to say.
    pub(super) Admission:
    /// Public; credentials are not even read.
    Anyone = "anyone",
    /// Callers that may become shoppers: all while shoppers are let in, else none.
    NewShopper = "new_shopper",
    /// Readers: every key; all callers while shoppers are let in.
    Look = "look",
    /// Buyers: keys that sell, and sessions while shoppers are let in.
    Buy = "buy",
    /// Keys that sell.
    Sell = "sell",
    /// Keys that lease.
    Lease = "lease",
    /// Staff: keys with the scope `read` or `admin`.
    Staff = "staff",
    /// Keys that administer.
    Admin = "admin",
}

/// The name, the meaning and the JSON type of a value in the query.
pub(super) type Parameter = (&'static str, &'static str, &'static str);

/// What is known of a route before its handler runs.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    pub(super) admission: Admission,
    pub(super) body: BodySize,
    /// Whether an empty body is refused.
    pub(super) needs_body: bool,
    /// Other names in the query are refused.
    pub(super) query: &'static [Parameter],
    /// Whether it may answer late because it was asked to.
    pub(super) waits: bool,
}

/// How much a body may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodySize {
    /// [`BODY_BYTES_MAX`].
    Usual,
    /// [`UNITS_BODY_BYTES_MAX`].
    Units,
    /// [`NOTICE_BYTES_MAX`].
    Notice,
    /// [`CHART_BODY_BYTES_MAX`].
    Chart,
}

impl BodySize {
    pub(super) const fn bytes_max(self) -> usize {
        match self {
            Self::Usual => BODY_BYTES_MAX,
            Self::Units => UNITS_BODY_BYTES_MAX,
            Self::Notice => NOTICE_BYTES_MAX,
            Self::Chart => CHART_BODY_BYTES_MAX,
        }
    }
}

/// The beginnings of the paths for anyone that have the largest answers.
const LARGE: [&str; 4] = [METRICS, "/openapi.json", "/docs", FOR_ALL];
/// Where the services of gRPC are that need no key: health and reflection.
pub(super) const FOR_ALL: &str = "/grpc.";
pub(super) const METRICS: &str = "/metrics";

impl Route {
    /// Creates a route that reads neither a body nor a query.
    pub(super) const fn new(verb: Verb, path: &'static str, admission: Admission) -> Self {
        Self {
            verb,
            path,
            admission,
            body: BodySize::Usual,
            needs_body: false,
            query: &[],
            waits: false,
        }
    }

    /// Tells whether a request counts for its caller. Of routes for anyone only those with the
    /// largest answers do: the others cost no more than a refusal.
    pub(super) fn is_counted(self) -> bool {
        let is_large = || LARGE.iter().any(|large| self.path.starts_with(large));
        self.admission != Admission::Anyone || is_large()
    }

    /// Tells whether it moves to the admin listener when there is one.
    pub(super) fn is_for_operators(self) -> bool {
        self.admission == Admission::Admin || self.path == METRICS
    }

    /// Returns method and path template, for metrics and the log.
    pub(super) fn label(self) -> String {
        format!("{} {}", self.verb.as_str(), self.path)
    }
}
