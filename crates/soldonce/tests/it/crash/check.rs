//! After a restart: every card against the server. What was acknowledged must be there as it was
//! told, or as far as the one request without an answer explains; every key is asked again.

use serde_json::Value;

use super::Violation;
use super::cards::{Card, Keyed, Life, Step, lasting, unit_names};
use super::client::{Ask, Client, HttpAnswer};

/// A look at the server after a fault.
pub(crate) struct Look<'a> {
    pub(crate) client: &'a mut Client,
    pub(crate) violations: Vec<Violation>,
}

impl Look<'_> {
    fn violated(&mut self, invariant: &'static str, what: String) {
        self.violations.push(Violation::new(invariant, what));
    }

    /// A request that must be answered: nothing is wrong with the server any more.
    fn ask(&mut self, ask: &Ask) -> Option<HttpAnswer> {
        let heard = self.client.ask(ask);
        match &heard {
            Some(heard) if heard.status < 500 => {}
            Some(heard) => {
                self.violated(
                    "S22",
                    format!("server-error {} {}", ask.path, heard.shown()),
                );
            }
            None => self.violated("L4", format!("no-answer {} {}", ask.method, ask.path)),
        }
        heard
    }

    /// Settles one card. Afterwards it says what the server says, and nothing is in doubt.
    pub(crate) fn card(&mut self, card: &mut Card) {
        if card.hold.is_none() {
            self.creation(card);
        }
        if card.hold.is_none() {
            return;
        }
        self.hold(card);
        self.repeat_creation(card);
        self.booking(card);
        card.doubt = None;
    }

    /// One card against a server that takes no more commands: nothing but what was acknowledged.
    pub(crate) fn as_acknowledged(&mut self, card: &Card) {
        let Some(known) = &card.hold else {
            let found = self.holds_of(&card.holder);
            if !found.is_empty() {
                self.violated(
                    "I27",
                    format!("shown-unstored holder={} {found:?}", card.holder),
                );
            }
            return;
        };
        let Some(heard) = self.ask(&Ask::get(card.path(""))) else {
            return;
        };
        if !agrees(known, &lasting(heard.json())) {
            self.violated(
                "I27",
                format!("shown-unstored known={known} found={}", heard.shown()),
            );
        }
    }

    /// A hold whose creation was not answered: there is one of this holder, or none.
    fn creation(&mut self, card: &mut Card) {
        let found = if card.create.ask.key.is_some() {
            let heard = self.ask(&card.create.ask);
            let heard = heard.filter(HttpAnswer::is_success);
            card.create.first.clone_from(&heard);
            heard.map(|heard| heard.json())
        } else {
            self.holds_of(&card.holder).into_iter().next()
        };
        card.hold = found.map(lasting);
        let live = self.holds_of(&card.holder).len();
        if live > usize::from(card.hold.is_some()) {
            self.violated(
                "I12",
                format!("two-holds holder={} live={live}", card.holder),
            );
        }
    }

    fn holds_of(&mut self, holder: &str) -> Vec<Value> {
        let heard = self.ask(&Ask::get(format!("/v1/holds?holder={holder}")));
        let list = heard.map(|heard| heard.json()["holds"].clone());
        list.and_then(|list| list.as_array().cloned())
            .unwrap_or_default()
    }

    fn hold(&mut self, card: &mut Card) {
        let (Some(known), Some(heard)) = (card.hold.clone(), self.ask(&Ask::get(card.path(""))))
        else {
            return;
        };
        if heard.status != 200 {
            self.violated("I14", format!("hold-lost {known} answer={}", heard.shown()));
            return;
        }
        let found = lasting(heard.json());
        if !is_explained(card, &known, &found) {
            let step = &card.doubt;
            self.violated(
                "I14",
                format!("hold-differs known={known} found={found} step={step:?}"),
            );
        }
        card.hold = Some(found);
    }

    /// The key of a hold gives the answer that made it, also when the hold is over since.
    fn repeat_creation(&mut self, card: &Card) {
        if card.create.ask.key.is_some() {
            self.repeat(&card.create);
        }
    }

    /// Asks again under a key whose first answer is known.
    fn repeat(&mut self, keyed: &Keyed) {
        let Some(first) = &keyed.first else { return };
        let Some(again) = self.ask(&keyed.ask) else {
            return;
        };
        if again.fixed() != first.fixed() || !again.replayed {
            let (path, again, first) = (&keyed.ask.path, again.shown(), first.shown());
            self.violated(
                "I12",
                format!("replay-differs {path} first={first} again={again}"),
            );
        }
    }

    fn booking(&mut self, card: &mut Card) {
        if let Some(mut confirm) = card.confirm.clone() {
            self.settle_key(card, &mut confirm, Card::booked);
            card.confirm = confirm.first.is_some().then_some(confirm);
        }
        // A hold never has a booking without its confirm.
        let told = card
            .hold
            .as_ref()
            .is_some_and(|hold| !hold["booking"].is_null());
        if told != card.booking.is_some() {
            self.violated("I15", format!("booking-from-nowhere hold={:?}", card.hold));
        }
        let Some(mut known) = card.booking.clone() else {
            return;
        };
        if let Some(mut cancel) = card.cancel.clone() {
            self.settle_key(card, &mut cancel, Card::cancelled);
            card.cancel = cancel.first.is_some().then_some(cancel);
            known = card.booking.clone().unwrap_or(known);
        }
        let id = card.booking_id().unwrap_or_default().to_owned();
        let Some(heard) = self.ask(&Ask::get(format!("/v1/bookings/{id}"))) else {
            return;
        };
        if heard.status != 200 {
            self.violated(
                "I14",
                format!("booking-lost {known} answer={}", heard.shown()),
            );
            return;
        }
        let found = lasting(heard.json());
        if found != known {
            self.violated(
                "I14",
                format!("booking-differs known={known} found={found}"),
            );
        }
    }

    /// Asks under a key until its answer is known, and once more.
    fn settle_key(&mut self, card: &mut Card, keyed: &mut Keyed, take: fn(&mut Card, &HttpAnswer)) {
        if keyed.first.is_none() {
            let Some(heard) = self.ask(&keyed.ask) else {
                return;
            };
            if heard.is_success() {
                take(card, &heard);
                keyed.first = Some(heard);
            } else if !(card.life == Life::Short && heard.code() == "hold_expired") {
                let path = &keyed.ask.path;
                self.violated(
                    "I12",
                    format!("key-refused {path} answer={}", heard.shown()),
                );
            }
        }
        self.repeat(keyed);
    }
}

/// Whether `found` is the hold as it was acknowledged, or as the step in doubt left it.
fn is_explained(card: &Card, known: &Value, found: &Value) -> bool {
    if agrees(known, found) {
        return true;
    }
    let is_short = card.life == Life::Short && known["state"] == "active";
    let ran_out = is_short && found["state"] == "expired";
    if ran_out && agrees_but(known, found, &["state", "units"]) {
        return true;
    }
    let Some(step) = &card.doubt else {
        return false;
    };
    // What was in doubt may have happened, and the hold may have ended since.
    let agrees_since = |but: &[&str]| {
        let since: &[&str] = if ran_out { &["state"] } else { &[] };
        agrees_but(known, found, &[but, since].concat())
    };
    match step {
        Step::Extend => agrees_since(&["expires_at", "units"]),
        Step::Release => {
            found["state"] == "released" && agrees_but(known, found, &["state", "units"])
        }
        Step::Confirm => {
            found["state"] == "consumed" && agrees_but(known, found, &["state", "units", "booking"])
        }
        Step::Change { add, drop } => {
            let mut units = unit_names(known, "units");
            units.extend(add.iter().cloned());
            units.retain(|unit| !drop.contains(unit));
            found["fence"].as_u64() >= known["fence"].as_u64()
                && units == unit_names(found, "units")
                && agrees_since(&["fence", "units", "total"])
        }
        Step::Cancel => false,
    }
}

pub(crate) fn agrees(known: &Value, found: &Value) -> bool {
    // Only the versions of its units go on when a hold is over.
    let is_over = known["state"] != "active";
    known == found || (is_over && agrees_but(known, found, &["units"]))
}

/// Whether all members but `but` are the same; the names of the units too unless they may differ.
fn agrees_but(known: &Value, found: &Value, but: &[&str]) -> bool {
    let (Some(known), Some(found)) = (known.as_object(), found.as_object()) else {
        return false;
    };
    let rest = |members: &serde_json::Map<String, Value>| {
        let mut members = members.clone();
        members.retain(|name, _| !but.contains(&name.as_str()));
        members
    };
    rest(known) == rest(found)
}
