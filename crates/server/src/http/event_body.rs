//! An event as the API shows it.

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use soldonce_core::{Event, EventState, Text, Timestamp};
use soldonce_engine::EventSummary;
use soldonce_engine::reply::Rfc3339;
use utoipa::ToSchema;

use super::policy::{PolicyBody, PolicySchema};

/// One performance, sale or drop.
#[derive(Serialize, ToSchema)]
#[schema(as = Event)]
pub(super) struct EventBody<'a> {
    id: &'a str,
    name: &'a str,
    #[schema(value_type = Option<String>, format = DateTime)]
    starts_at: Option<Rfc3339>,
    /// ISO 4217.
    currency: &'a str,
    /// Of each category, in minor units.
    #[schema(value_type = std::collections::BTreeMap<String, i64>)]
    prices: Prices<'a>,
    #[schema(inline = false, value_type = PolicySchema)]
    policy: PolicyBody<'a>,
    state: StateWord,
    /// Why it was called off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<&'a str>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    /// Units in all, area places included.
    total: u32,
    free: u32,
    /// Held for the moment; they may be free again.
    held: u32,
    on_sale: bool,
    /// The last commit number.
    seq: u64,
    /// What the reader of the chart had to change or leave out.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Option<Vec<String>>, nullable = false)]
    notes: &'a [String],
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = EventState)]
enum StateWord {
    Open,
    Cancelled,
}

impl<'a> EventBody<'a> {
    pub(super) fn new(summary: &'a EventSummary, now: Timestamp, notes: &'a [String]) -> Self {
        let (event, snapshot) = (&*summary.event, &summary.snapshot);
        let (state, reason) = match &event.state {
            EventState::Open => (StateWord::Open, None),
            EventState::Cancelled(reason) => (StateWord::Cancelled, Some(Text::as_str(reason))),
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
            total: snapshot.total.total(),
            free: snapshot.total.free,
            held: snapshot.total.held,
            on_sale: event.require_on_sale(now).is_ok(),
            seq: snapshot.seq.0,
            notes,
        }
    }
}

/// Returns a number that changes when the event is changed. Counts of its units are left out, and
/// what its times alone bring about: all readers that poll would read the event anew in the second
/// in which its sale opens.
pub(super) fn terms(summary: &EventSummary) -> u32 {
    let body = EventBody {
        free: 0,
        held: 0,
        seq: 0,
        on_sale: false,
        ..EventBody::new(summary, Timestamp::MIN, &[])
    };
    // Writing to memory does not fail.
    let text = serde_json::to_vec(&body).unwrap_or_default();
    let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(text).into();
    u32::from_be_bytes([a, b, c, d])
}

struct Prices<'a>(&'a Event);

impl Serialize for Prices<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let prices = self.0.chart.categories().iter().zip(&self.0.prices);
        to.collect_map(prices.map(|(category, price)| (category, price.minor())))
    }
}
