//! What a shop asks of a server: an event in a hall, a hold of a seat, its sale.

use serde_json::{Value, json};
use soldonce_testkit::{PATIENCE, until_some};

use crate::crash::client::{Ask, Client};

/// What a seat of a hall costs, in cents.
pub(crate) const PRICE: i64 = 4_500;

/// Describes an event of this id, in a hall of so many rows of so many seats.
pub(crate) fn hall(id: &str, rows: usize, seats: usize) -> Value {
    json!({
        "id": id, "name": "Hamlet", "currency": "EUR",
        "chart": {"format": "grid", "rows": rows, "seats_per_row": seats, "category": "Standard"},
        "prices": {"Standard": PRICE},
    })
}

/// Asks for a hold of one seat.
pub(crate) fn hold(event: &str, who: &str, seat: &str) -> Ask {
    let body = json!({"holder": who, "units": [{"seat": seat}]});
    Ask::post(&format!("/v1/events/{event}/holds"), body)
}

/// Asks for the sale of what is held.
pub(crate) fn confirm(held: &Value) -> Ask {
    let id = held["id"].as_str().unwrap();
    Ask::post(&format!("/v1/holds/{id}/confirm"), json!({}))
}

/// Asks for what must succeed.
#[track_caller]
pub(crate) fn done(client: &mut Client, ask: &Ask) -> Value {
    let heard = client.ask(ask).unwrap();
    assert!(heard.is_success(), "{ask:?}: {}", heard.shown());
    heard.json()
}

/// Asks again until the answer is as it is to be; a bounded wait.
pub(crate) fn until(client: &mut Client, path: &str, is_right: impl Fn(&Value) -> bool) -> Value {
    let mut last = String::new();
    let wanted = until_some(path, PATIENCE, || {
        let heard = client.ask(&Ask::get(path.to_owned())).unwrap();
        last = heard.shown();
        Ok(Some(heard.json()).filter(|body| heard.is_success() && is_right(body)))
    });
    wanted.unwrap_or_else(|error| panic!("{error}: {last}"))
}
