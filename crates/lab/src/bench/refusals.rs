//! Everybody wants the seat that somebody has.

use super::super::load::{Fixed, Makers, RequestMaker};
use super::hall::{admin, make_event, sell_key};
use super::requests::Requests;
use super::scenario::{Goal, Prepared, Scenario, Setting};

/// The scenario `refusals`.
pub(crate) struct Refusals;

const EVENT: &str = "hot";
const ROWS: u64 = 10;
const SEATS_PER_ROW: u64 = 20;

impl Scenario for Refusals {
    fn name(&self) -> &'static str {
        "refusals"
    }

    fn about(&self) -> &'static str {
        "POST hold of one seat that another has: refused with conflicts and alternatives"
    }

    fn expects(&self) -> &'static [u16] {
        &[409]
    }

    fn goal(&self) -> Option<Goal> {
        Some(Goal {
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
            let maker = move |connection: usize| {
                let mut requests = Requests::new(address, &key);
                let body =
                    format_args!(r#"{{"holder":"user-{connection}","units":[{{"seat":"E-10"}}]}}"#);
                let path = format_args!("/v1/events/{EVENT}/holds");
                let bytes = requests.post(path, format_args!(""), body).to_vec();
                Box::new(Fixed(bytes)) as Box<dyn RequestMaker>
            };
            Ok(Box::new(maker) as Makers)
        })
    }
}
