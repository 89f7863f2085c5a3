//! An event as the API shows it.

use serde::{Serialize, Serializer};
use soldonce_core::{Event, EventState, Text, Timestamp};
use soldonce_engine::EventSummary;
use soldonce_engine::reply::Rfc3339;

use super::policy::PolicyBody;

#[derive(Serialize)]
pub(super) struct EventBody<'a> {
    id: &'a str,
    name: &'a str,
    starts_at: Option<Rfc3339>,
    currency: &'a str,
    prices: Prices<'a>,
    policy: PolicyBody<'a>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    created_at: Rfc3339,
    total: u32,
    free: u32,
    held: u32,
    on_sale: bool,
    seq: u64,
    /// What the reader of its chart had to change or leave out.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
}

impl<'a> EventBody<'a> {
    pub(super) fn new(summary: &'a EventSummary, now: Timestamp, notes: &'a [String]) -> Self {
        let (event, picture) = (&*summary.event, &summary.picture);
        let (state, reason) = match &event.state {
            EventState::Open => ("open", None),
            EventState::Cancelled(reason) => ("cancelled", Some(Text::as_str(reason))),
        };
        Self {
            id: event.id.as_str(),
            name: event.name.as_str(),
            starts_at: event.starts_at.map(Rfc3339),
            currency: event.currency.as_str(),
            prices: Prices(event),
            policy: PolicyBody {
                policy: &event.policy,
                starts_at: event.starts_at,
            },
            state,
            reason,
            created_at: Rfc3339(event.created_at),
            total: picture.total.total(),
            free: picture.total.free,
            held: picture.total.held,
            on_sale: event.require_on_sale(now).is_ok(),
            seq: picture.seq.0,
            notes,
        }
    }
}

struct Prices<'a>(&'a Event);

impl Serialize for Prices<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let prices = self.0.chart.categories().iter().zip(&self.0.prices);
        to.collect_map(prices.map(|(category, price)| (category, price.minor())))
    }
}
