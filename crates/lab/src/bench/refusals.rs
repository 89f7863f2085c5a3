//! Everybody wants the seat that somebody has.

use super::super::load::{Fixed, Makers, RequestMaker, Turn};
use super::hall::{admin, make_event, sell_key};
use super::requests::Requests;
use super::scenario::{Goal, Prepared, Scenario, Setting, Target};

/// The scenarios `refusals` and, on PostgreSQL, without and with a fresh idempotency key each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusals {
    Embedded,
    Shared,
    Keyed,
}

/// The two whose rates are compared (P15).
pub(super) const REFUSALS_SHARED: &str = "refusals-postgres";
pub(super) const REFUSALS_KEYED: &str = "refusals-postgres-keyed";

const EVENT: &str = "hot";
const ROWS: u64 = 10;
const SEATS_PER_ROW: u64 = 20;

impl Scenario for Refusals {
    fn name(&self) -> &'static str {
        match self {
            Self::Embedded => "refusals",
            Self::Shared => REFUSALS_SHARED,
            Self::Keyed => REFUSALS_KEYED,
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Embedded => {
                "POST hold of one seat that another has: refused with conflicts and alternatives"
            }
            Self::Shared => "the same on PostgreSQL",
            Self::Keyed => "the same on PostgreSQL, each with an idempotency key of its own",
        }
    }

    fn target(&self) -> Target {
        match self {
            Self::Embedded => Target::Product,
            Self::Shared | Self::Keyed => Target::Database,
        }
    }

    fn expects(&self) -> &'static [u16] {
        &[409]
    }

    fn goal(&self) -> Option<Goal> {
        (*self == Self::Embedded).then_some(Goal {
            id: "P2",
            first: 750,
            full: 850,
        })
    }

    fn set_up<'a>(&'a self, setting: &'a Setting) -> Prepared<'a, Makers> {
        Box::pin(async move {
            let admin = admin(setting)?;
            let key = sell_key(admin).await?;
            make_event(admin, EVENT, (ROWS, SEATS_PER_ROW)).await?;
            let first = serde_json::json!({ "holder": "first", "units": [{ "seat": "E-10" }] });
            let path = format!("/v1/events/{EVENT}/holds");
            admin
                .send(axum::http::Method::POST, &path, Some(&first))
                .await?
                .into_success()?;
            let address = setting.address;
            let make = if *self == Self::Keyed {
                Keyed::boxed
            } else {
                always_same
            };
            let maker = move |connection: usize| make(Requests::new(address, &key), connection);
            Ok(Box::new(maker) as Makers)
        })
    }
}

/// The same request again and again, without a key.
fn always_same(mut requests: Requests, connection: usize) -> Box<dyn RequestMaker> {
    let bytes = requests.post(
        format_args!("/v1/events/{EVENT}/holds"),
        format_args!(""),
        format_args!(r#"{{"holder":"user-{connection}","units":[{{"seat":"E-10"}}]}}"#),
    );
    Box::new(Fixed(bytes.to_vec()))
}

/// Requests with a key that none had before.
struct Keyed {
    requests: Requests,
    connection: usize,
}

impl Keyed {
    fn boxed(requests: Requests, connection: usize) -> Box<dyn RequestMaker> {
        Box::new(Self {
            requests,
            connection,
        })
    }
}

impl RequestMaker for Keyed {
    fn next(&mut self, turn: Turn<'_>) -> Option<&[u8]> {
        let (connection, sent) = (self.connection, turn.request);
        Some(self.requests.post(
            format_args!("/v1/events/{EVENT}/holds"),
            format_args!("idempotency-key: {connection}-{sent}\r\n"),
            format_args!(r#"{{"holder":"user-{connection}","units":[{{"seat":"E-10"}}]}}"#),
        ))
    }
}
