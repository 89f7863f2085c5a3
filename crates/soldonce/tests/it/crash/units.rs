//! The end of a run: every unit's history against everything that was ever asked, and every booking
//! against every other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use soldonce_testkit::{PATIENCE, until};

use super::Violation;
use super::cards::{Card, EVENT, unit_names, units};
use super::client::{Ask, Client, Outcome};

/// How a violation begins that says so of seats and places that are held.
const HELD_DIFFERS: &str = "shown-differs held";

/// Checks the whole hall, once what the clock ended is written down: the sweeper does that a moment after
/// it is no longer shown as held.
pub(crate) fn check_hall(
    client: &mut Client,
    cards: &[Card],
    outcomes: &BTreeMap<String, Outcome>,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let written = until("what ended is written down", PATIENCE, || {
        violations = look_at_hall(client, cards, outcomes);
        let mut all = violations.iter();
        !all.any(|violation| violation.what.starts_with(HELD_DIFFERS))
    });
    // If it never is, the violations say so.
    written.ok();
    violations
}

fn look_at_hall(
    client: &mut Client,
    cards: &[Card],
    outcomes: &BTreeMap<String, Outcome>,
) -> Vec<Violation> {
    let mut histories = Histories::new(cards, outcomes);
    let mut states: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    for unit in units() {
        let path = format!("/v1/events/{EVENT}/units/{unit}/history");
        let heard = client.ask(&Ask::get(path));
        let history = heard.map(|heard| heard.json()).unwrap_or_default();
        let state = histories.unit(&unit, &history);
        states.entry(state).or_default().insert(unit);
    }
    histories.missing();
    let sold = states.remove("sold").unwrap_or_default();
    let held = states.remove("held").unwrap_or_default();
    histories.bookings(&sold);
    let snapshot = client.ask(&Ask::get(format!("/v1/events/{EVENT}/seats")));
    let snapshot = snapshot.map(|heard| heard.json()).unwrap_or_default();
    histories.snapshot(&snapshot, &sold, &held);
    histories.violations
}

struct Histories<'a> {
    cards: &'a [Card],
    outcomes: &'a BTreeMap<String, Outcome>,
    holds: BTreeSet<&'a str>,
    bookings: BTreeSet<&'a str>,
    /// Requests that were found to have moved a unit.
    seen: BTreeSet<String>,
    violations: Vec<Violation>,
}

impl<'a> Histories<'a> {
    fn new(cards: &'a [Card], outcomes: &'a BTreeMap<String, Outcome>) -> Self {
        Self {
            cards,
            outcomes,
            holds: cards.iter().filter_map(Card::id).collect(),
            bookings: cards.iter().filter_map(Card::booking_id).collect(),
            seen: BTreeSet::new(),
            violations: Vec::new(),
        }
    }

    fn violated(&mut self, invariant: &'static str, what: String) {
        self.violations.push(Violation::new(invariant, what));
    }

    /// One unit's transitions; gives the state they end in.
    fn unit(&mut self, unit: &str, history: &Value) -> &'static str {
        let Some(rows) = history["transitions"].as_array() else {
            self.violated("I20", format!("no-history unit={unit} answer={history}"));
            return "unknown";
        };
        let (mut state, mut fence, mut version) = ("free", 0, 0);
        for row in rows {
            let number = |name: &str| row[name].as_u64().unwrap_or_default();
            if row["from"] != state || number("version") != version + 1 {
                self.violated(
                    "I20",
                    format!("gap unit={unit} after={state} version={version} {row}"),
                );
            }
            let owner_changes = row["from"] == "free" && row["to"] != "free";
            if number("fence") < fence || (owner_changes && number("fence") <= fence) {
                self.violated("I6", format!("fence-falls unit={unit} fence={fence} {row}"));
            }
            (fence, version) = (number("fence"), number("version"));
            state = match row["to"].as_str() {
                Some("free") => "free",
                Some("held") => "held",
                Some("sold") => "sold",
                _ => "other",
            };
            self.attempt(unit, row);
        }
        state
    }

    /// A transition must belong to something that was asked and not refused.
    fn attempt(&mut self, unit: &str, row: &Value) {
        let request = row["request_id"].as_str().unwrap_or_default();
        let known = match row["actor"].as_str() {
            Some("system") => true,
            _ => self
                .outcomes
                .get(request)
                .is_some_and(|outcome| !matches!(outcome, Outcome::Refused)),
        };
        let is_of = |name: &str, known: &BTreeSet<&str>| {
            row[name].as_str().is_none_or(|id| known.contains(id))
        };
        if !known || !is_of("hold", &self.holds) || !is_of("booking", &self.bookings) {
            self.violated("I15", format!("from-nowhere unit={unit} {row}"));
        }
        self.seen.insert(request.to_owned());
    }

    /// Every move that was acknowledged must have moved something.
    fn missing(&mut self) {
        let moved = self
            .outcomes
            .iter()
            .filter(|(_, outcome)| **outcome == Outcome::Moved);
        let lost: Vec<String> = moved
            .map(|(id, _)| id.clone())
            .filter(|id| !self.seen.contains(id))
            .collect();
        for id in lost {
            self.violated("I14", format!("effect-lost request={id}"));
        }
    }

    /// No unit in two bookings, and those in one are the sold ones.
    fn bookings(&mut self, sold: &BTreeSet<String>) {
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        let bookings = self.cards.iter().filter_map(|card| card.booking.as_ref());
        for (unit, id) in bookings.flat_map(open_lines) {
            if let Some(other) = owners.insert(unit.clone(), id.clone()) {
                self.violated(
                    "I1",
                    format!("sold-twice unit={unit} bookings={other},{id}"),
                );
            }
        }
        let owned: BTreeSet<String> = owners.into_keys().collect();
        if owned != *sold {
            self.violated(
                "I3",
                format!("sold-differs bookings={owned:?} units={sold:?}"),
            );
        }
    }

    /// What everybody is shown agrees with the histories.
    fn snapshot(&mut self, shown: &Value, sold: &BTreeSet<String>, held: &BTreeSet<String>) {
        for (list, units) in [("sold", sold), ("held", held)] {
            let seats = shown[list].as_array().into_iter().flatten();
            let seats: BTreeSet<&str> = seats.filter_map(Value::as_str).collect();
            let places = shown["areas"][0][list].as_u64();
            let (floor, rows): (Vec<&str>, Vec<&str>) = units
                .iter()
                .map(String::as_str)
                .partition(|unit| unit.starts_with("floor"));
            let count = u64::try_from(floor.len()).ok();
            if seats != rows.into_iter().collect() || places != count {
                self.violated(
                    "I10",
                    format!("shown-differs {list} shown={shown} units={units:?}"),
                );
            }
        }
    }
}

/// The units that a booking still has, each with the booking's id.
fn open_lines(booking: &Value) -> Vec<(String, String)> {
    let mut open = booking.clone();
    if let Some(lines) = open["lines"].as_array_mut() {
        lines.retain(|line| line["state"] != "cancelled");
    }
    let id = booking["id"].as_str().unwrap_or_default();
    unit_names(&open, "lines")
        .into_iter()
        .map(|unit| (unit, id.to_owned()))
        .collect()
}
