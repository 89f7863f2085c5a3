//! What a client knows of each hold it asked for: the last thing that was acknowledged, and what was
//! asked since and never answered. Kept in this process, so no fault of the server can touch it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::client::{Ask, HttpAnswer};

/// The event that everything happens in.
pub(crate) const EVENT: &str = "hall";
const ROWS: [char; 6] = ['A', 'B', 'C', 'D', 'E', 'F'];
const SEATS_PER_ROW: usize = 20;
const FLOOR: usize = 40;
/// A hold that ends while the rig runs, milliseconds.
const SHORT_TTL_MS: u64 = 1_000;

/// Every seat of the hall.
pub(crate) fn seats() -> Vec<String> {
    let row = |row: char| (1..=SEATS_PER_ROW).map(move |seat| format!("{row}-{seat}"));
    ROWS.into_iter().flat_map(row).collect()
}

/// Every unit of the hall: its seats and the places of its floor.
pub(crate) fn units() -> Vec<String> {
    let places = (1..=FLOOR).map(|place| format!("floor.{place}"));
    seats().into_iter().chain(places).collect()
}

/// Creates the hall. Its holds outlast the rig unless they are asked to be short.
pub(crate) fn create_hall() -> Ask {
    let seats: Vec<Value> = seats()
        .iter()
        .map(|seat| json!({"seat": seat, "category": "Standard"}))
        .collect();
    let areas = json!([{"area": "floor", "capacity": FLOOR, "category": "Standing"}]);
    let body = json!({
        "id": EVENT, "name": "Hall", "currency": "EUR",
        "chart": {"format": "seats", "seats": seats, "areas": areas},
        "prices": {"Standard": 4500, "Standing": 3000},
        "policy": {"hold_ttl_ms": 3_600_000, "hold_max_ms": 7_200_000},
    });
    Ask::new("POST", "/v1/events".to_owned(), Some(body))
}

/// Whether a hold ends while the rig runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Long,
    Short,
}

/// What was asked of a hold.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Change { add: Vec<String>, drop: Vec<String> },
    Extend,
    Release,
    Confirm,
    Cancel,
}

/// A request with a key, and its first answer.
#[derive(Clone, Debug)]
pub(crate) struct Keyed {
    pub(crate) ask: Ask,
    pub(crate) first: Option<HttpAnswer>,
}

/// One hold and its booking.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    /// Named like no other holder, so all that is found belongs to one attempt.
    pub(crate) holder: String,
    pub(crate) life: Life,
    pub(crate) create: Keyed,
    /// The hold as last acknowledged.
    pub(crate) hold: Option<Value>,
    /// The booking as last acknowledged.
    pub(crate) booking: Option<Value>,
    /// What was asked since without an answer; for a card without hold: its creation.
    pub(crate) doubt: Option<Step>,
    pub(crate) confirm: Option<Keyed>,
    pub(crate) cancel: Option<Keyed>,
}

/// What a hold is asked for.
pub(crate) struct Wanted {
    pub(crate) holder: String,
    pub(crate) life: Life,
    /// `units` or `best`, and its value.
    pub(crate) wish: (&'static str, Value),
    pub(crate) key: Option<String>,
}

impl Card {
    pub(crate) fn new(wanted: Wanted) -> Self {
        let mut body = json!({"holder": wanted.holder, wanted.wish.0: wanted.wish.1});
        if wanted.life == Life::Short {
            body["ttl_ms"] = SHORT_TTL_MS.into();
        }
        let path = format!("/v1/events/{EVENT}/holds");
        let ask = Ask::new("POST", path, Some(body)).moving();
        Self {
            life: wanted.life,
            create: Keyed {
                ask: Ask {
                    key: wanted.key,
                    ..ask
                },
                first: None,
            },
            holder: wanted.holder,
            hold: None,
            booking: None,
            doubt: None,
            confirm: None,
            cancel: None,
        }
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.hold.as_ref()?["id"].as_str()
    }

    pub(crate) fn booking_id(&self) -> Option<&str> {
        self.booking.as_ref()?["id"].as_str()
    }

    pub(crate) fn state(&self) -> &str {
        self.hold
            .as_ref()
            .and_then(|hold| hold["state"].as_str())
            .unwrap_or("unknown")
    }

    /// Path of something to do with the hold.
    pub(crate) fn path(&self, what: &str) -> String {
        format!("/v1/holds/{}{what}", self.id().unwrap_or_default())
    }

    /// Confirms the hold, always under the same key.
    pub(crate) fn ask_confirm(&mut self) -> Ask {
        let (key, body) = (
            format!("confirm-{}", self.holder),
            json!({"reference": self.holder}),
        );
        let ask = Ask::new("POST", self.path("/confirm"), Some(body))
            .keyed(&key)
            .moving();
        let keyed = self.confirm.get_or_insert(Keyed { ask, first: None });
        keyed.ask.clone()
    }

    /// Cancels the booking whole, always under the same key.
    pub(crate) fn ask_cancel(&mut self) -> Ask {
        let path = format!(
            "/v1/bookings/{}/cancel",
            self.booking_id().unwrap_or_default()
        );
        let key = format!("cancel-{}", self.holder);
        let ask = Ask::new("POST", path, Some(json!({}))).keyed(&key).moving();
        let keyed = self.cancel.get_or_insert(Keyed { ask, first: None });
        keyed.ask.clone()
    }

    /// Takes notice of an acknowledged hold.
    pub(crate) fn held(&mut self, heard: &HttpAnswer) {
        self.hold = Some(lasting(heard.json()));
    }

    /// Takes notice of an acknowledged booking.
    pub(crate) fn booked(&mut self, heard: &HttpAnswer) {
        let booking = lasting(heard.json());
        if let Some(hold) = &mut self.hold {
            hold["state"] = "consumed".into();
            hold["booking"] = booking["id"].clone();
        }
        self.booking = Some(booking);
    }

    /// Takes notice of an acknowledged cancellation.
    pub(crate) fn cancelled(&mut self, heard: &HttpAnswer) {
        self.booking = Some(lasting(heard.json()));
    }

    /// Whether nothing can happen to it any more.
    pub(crate) fn is_over(&self) -> bool {
        let is_cancelled = |booking: &Value| booking["state"] == "cancelled";
        match self.state() {
            "released" | "expired" => true,
            "consumed" => self.booking.as_ref().is_some_and(is_cancelled),
            _ => false,
        }
    }
}

/// What of an answer lasts: everything but the time of the answer and the secret.
pub(crate) fn lasting(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        for passing in ["server_time", "secret", "seq"] {
            members.remove(passing);
        }
    }
    value
}

/// The names of the units of a hold, or the lines of a booking.
pub(crate) fn unit_names(of: &Value, list: &str) -> BTreeSet<String> {
    let names = of[list].as_array().into_iter().flatten();
    names
        .filter_map(|unit| unit["seat"].as_str().or_else(|| unit["place"].as_str()))
        .map(str::to_owned)
        .collect()
}
