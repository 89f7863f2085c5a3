//! Workers that hold, change, extend, release, confirm and cancel until the server is gone. Each has
//! its own holds, so of one hold at most one request is ever without an answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use serde_json::{Value, json};

use super::Violation;
use super::cards::{Card, Life, Step, Wanted, seats, unit_names};
use super::client::{Ask, Client, HttpAnswer, Outcome};
use super::draw::Draw;

/// A safety net: a worker that is never interrupted ends all the same.
const REQUESTS_MAX: usize = 20_000;
/// Holds that a worker has at once.
const HOLDS_MAX: usize = 4;
/// Bookings that a worker keeps before it cancels one.
const BOOKINGS_MAX: usize = 2;

/// One hold of eight ends while the rig runs.
const LIVES: [Life; 8] = {
    let mut lives = [Life::Long; 8];
    lives[0] = Life::Short;
    lives
};

/// Why a worker ended early.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// No answer.
    Silence,
    /// The server said that it cannot.
    Error(HttpAnswer),
}

/// Acknowledgements until something is to happen.
pub(crate) struct Target {
    left: AtomicU64,
    reached: SyncSender<()>,
}

impl Target {
    pub(crate) fn new(acknowledgements: u64, reached: SyncSender<()>) -> Self {
        Self {
            left: AtomicU64::new(acknowledgements),
            reached,
        }
    }

    fn count(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.reached.send(()).unwrap();
        }
    }
}

/// One client over all lives of the server.
#[derive(Clone)]
pub(crate) struct Worker {
    name: String,
    draw: Draw,
    made: usize,
    lives: &'static [Life],
    /// Cards that something can still happen to, and those touched since they were last checked.
    pub(crate) open: Vec<Card>,
    /// Cards that are over.
    pub(crate) over: Vec<Card>,
    pub(crate) outcomes: Vec<(String, Outcome)>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) acknowledged: usize,
}

impl Worker {
    pub(crate) fn new(number: usize, draw: &Draw) -> Self {
        Self {
            name: format!("w{number}"),
            draw: draw.part(u64::try_from(number).unwrap()),
            made: 0,
            lives: &LIVES,
            open: Vec::new(),
            over: Vec::new(),
            outcomes: Vec::new(),
            violations: Vec::new(),
            acknowledged: 0,
        }
    }

    /// A worker all of whose holds outlast the rig, so that nothing depends on the time.
    pub(crate) fn timeless(number: usize, draw: &Draw) -> Self {
        Self {
            lives: &[Life::Long],
            ..Self::new(number, draw)
        }
    }

    /// Works until a request stays without an answer; no answer may be a server's error.
    pub(crate) fn work(&mut self, mut client: Client, target: &Target) {
        if let Some(Ended::Error(heard)) = self.requests(&mut client, REQUESTS_MAX, target) {
            let what = format!("server-error {}", heard.shown());
            self.violations.push(Violation::new("S22", what));
        }
    }

    /// So many requests, or fewer if it ends before.
    pub(crate) fn requests(
        &mut self,
        client: &mut Client,
        count: usize,
        target: &Target,
    ) -> Option<Ended> {
        let mut ended = None;
        for _ in 0..count {
            match self.once(client) {
                None => ended = Some(Ended::Silence),
                Some(heard) if heard.status >= 500 => ended = Some(Ended::Error(heard)),
                Some(heard) if heard.is_success() => {
                    self.acknowledged += 1;
                    target.count();
                }
                Some(_) => {}
            }
            if ended.is_some() {
                break;
            }
        }
        self.outcomes.append(&mut client.outcomes);
        ended
    }

    /// One request; nothing if it stays without an answer.
    fn once(&mut self, client: &mut Client) -> Option<HttpAnswer> {
        let holds = self.indices(|card| card.booking.is_none() && !card.is_over());
        let bookings = self.indices(|card| card.booking.is_some() && !card.is_over());
        if bookings.len() > BOOKINGS_MAX {
            let at = self.draw.below(bookings.len());
            return self.cancel(client, bookings[at]);
        }
        if holds.len() < HOLDS_MAX && !self.draw.one_in(3) || holds.is_empty() {
            return self.hold(client);
        }
        let at = holds[self.draw.below(holds.len())];
        match self.draw.below(8) {
            0 | 1 => self.extend(client, at),
            2 | 3 => self.change(client, at),
            4 => self.release(client, at),
            _ => self.confirm(client, at),
        }
    }

    fn indices(&self, which: impl Fn(&Card) -> bool) -> Vec<usize> {
        (0..self.open.len())
            .filter(|at| which(&self.open[*at]))
            .collect()
    }

    fn any_seat(&mut self) -> String {
        let seats = seats();
        seats[self.draw.below(seats.len())].clone()
    }

    fn hold(&mut self, client: &mut Client) -> Option<HttpAnswer> {
        self.made += 1;
        let holder = format!("{}-{}", self.name, self.made);
        let wish = match self.draw.below(6) {
            0 => ("units", json!([{"area": "floor", "quantity": 2}])),
            1 => ("best", json!({"quantity": 2, "category": "Standard"})),
            _ => {
                let named = (0..=self.draw.below(3)).map(|_| json!({"seat": self.any_seat()}));
                ("units", named.collect::<Vec<Value>>().into())
            }
        };
        let mut card = Card::new(Wanted {
            life: self.lives[self.draw.below(self.lives.len())],
            wish,
            key: self.draw.one_in(2).then(|| format!("hold-{holder}")),
            holder,
        });
        let heard = client.ask(&card.create.ask);
        match &heard {
            Some(heard) if heard.is_success() => {
                card.held(heard);
                card.create.first = Some(heard.clone());
                self.open.push(card);
            }
            Some(heard) if heard.status < 500 => {}
            // Whether there is a hold is asked after the restart.
            Some(_) | None => self.open.push(card),
        }
        heard
    }

    fn extend(&mut self, client: &mut Client, at: usize) -> Option<HttpAnswer> {
        let card = &mut self.open[at];
        let ask = Ask::new("POST", card.path("/extend"), Some(json!({})));
        let heard = client.ask(&ask);
        settle(card, Step::Extend, heard.as_ref(), Card::held);
        heard
    }

    fn change(&mut self, client: &mut Client, at: usize) -> Option<HttpAnswer> {
        let seat = self.any_seat();
        let card = &mut self.open[at];
        let units = unit_names(card.hold.as_ref()?, "units");
        let own_seat = units
            .iter()
            .find(|unit| !unit.starts_with("floor"))
            .cloned();
        let step = match own_seat {
            Some(own) if units.len() > 1 && !units.contains(&seat) && self.draw.one_in(2) => {
                (vec![seat], vec![own])
            }
            Some(own) if units.len() > 3 => (vec![], vec![own]),
            _ => (vec![seat], vec![]),
        };
        let (add, drop) = step;
        let named = |units: &[String]| -> Vec<Value> {
            units.iter().map(|unit| json!({"seat": unit})).collect()
        };
        let body = json!({"add": named(&add), "drop": named(&drop)});
        let ask = Ask::new("PATCH", card.path(""), Some(body));
        let ask = if add.iter().all(|unit| units.contains(unit)) {
            ask
        } else {
            ask.moving()
        };
        let heard = client.ask(&ask);
        settle(card, Step::Change { add, drop }, heard.as_ref(), Card::held);
        heard
    }

    fn release(&mut self, client: &mut Client, at: usize) -> Option<HttpAnswer> {
        let card = &mut self.open[at];
        let heard = client.ask(&Ask::new("DELETE", card.path(""), None).moving());
        settle(card, Step::Release, heard.as_ref(), Card::held);
        heard
    }

    fn confirm(&mut self, client: &mut Client, at: usize) -> Option<HttpAnswer> {
        let card = &mut self.open[at];
        let heard = client.ask(&card.ask_confirm());
        settle(card, Step::Confirm, heard.as_ref(), Card::booked);
        keep_first(&mut card.confirm, heard.as_ref());
        heard
    }

    fn cancel(&mut self, client: &mut Client, at: usize) -> Option<HttpAnswer> {
        let card = &mut self.open[at];
        let heard = client.ask(&card.ask_cancel());
        settle(card, Step::Cancel, heard.as_ref(), Card::cancelled);
        keep_first(&mut card.cancel, heard.as_ref());
        heard
    }
}

/// Writes an answer, or its absence, on the card.
fn settle(
    card: &mut Card,
    step: Step,
    heard: Option<&HttpAnswer>,
    take: fn(&mut Card, &HttpAnswer),
) {
    match heard {
        Some(heard) if heard.is_success() => take(card, heard),
        Some(heard) if card.life == Life::Short && heard.code() == "hold_expired" => {
            if let Some(hold) = &mut card.hold {
                hold["state"] = "expired".into();
            }
        }
        Some(heard) if heard.status < 500 => {}
        Some(_) | None => card.doubt = Some(step),
    }
}

/// The first success under a key is what every repetition must give.
fn keep_first(keyed: &mut Option<super::cards::Keyed>, heard: Option<&HttpAnswer>) {
    match heard {
        Some(heard) if heard.is_success() => {
            if let Some(keyed) = keyed {
                keyed.first.get_or_insert_with(|| heard.clone());
            }
        }
        // Refused before it had an effect: the key stands for nothing.
        Some(heard) if heard.status < 500 => *keyed = None,
        Some(_) | None => {}
    }
}
