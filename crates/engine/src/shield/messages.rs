//! Messages to the shield between servers, sent in the background: what was committed, what it has
//! wrong, and claims to be released. The queue is bounded and never blocks: a message that finds it
//! full is dropped and counted, and some requests then reach the ledger in vain.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use soldonce_core::{AreaNo, Chart, Commit, EventNo, Inventory, Span, Timestamp, UnitState};
use tokio::sync::mpsc;

use super::zones::{zone_of_areas, zone_of_seat};
use super::{Kind, Known, KnownState, Note, Part, Shield, Thing, Who, Zone};
use crate::limits::{
    SHIELD_BELIEF_MS, SHIELD_EARLY_MS, SHIELD_FULL_MS, SHIELD_MESSAGES_MAX, SHIELD_SOLD_JITTER_MS,
    SHIELD_UNITS_MAX,
};
use crate::live::who_has;
use crate::locks::lock;
use crate::metrics::Metrics;

#[derive(Debug)]
pub(crate) enum Message {
    /// The state of some units of an event.
    Known(EventNo, Vec<Known>),
    /// Claims of one holder that did not become a hold, to be released.
    Drop(Who, Vec<Part>),
}

/// A shield between servers and the queue of messages to it.
pub(crate) struct SharedShield {
    pub(crate) shield: Arc<dyn Shield>,
    pub(crate) messages: Messages,
    queue: Mutex<Option<mpsc::Receiver<Message>>>,
}

impl SharedShield {
    pub(crate) fn new(shield: Arc<dyn Shield>, metrics: &Arc<Metrics>) -> Self {
        let (sender, queue) = mpsc::channel(SHIELD_MESSAGES_MAX);
        let messages = Messages {
            sender,
            metrics: Arc::clone(metrics),
        };
        Self {
            shield,
            messages,
            queue: Mutex::new(Some(queue)),
        }
    }

    /// Takes the receiving end of the queue, for one task; none if it was taken before.
    pub(crate) fn queue(&self) -> Option<mpsc::Receiver<Message>> {
        lock(&self.queue).take()
    }
}

/// The sending end of the queue.
pub(crate) struct Messages {
    sender: mpsc::Sender<Message>,
    metrics: Arc<Metrics>,
}

impl Messages {
    /// Sends a message, or drops it if too many wait.
    pub(crate) fn send(&self, message: Message) {
        if let Err(left) = self.sender.try_send(message) {
            let (mpsc::error::TrySendError::Full(message)
            | mpsc::error::TrySendError::Closed(message)) = left;
            self.metrics.shield_notes_dropped.inc_by(message.notes());
        }
    }

    /// Sends the state of the seats that a commit changed.
    pub(crate) fn note_commit(&self, inventory: &Inventory, (chart, commit): (&Chart, &Commit)) {
        let steps = commit.transitions.iter();
        let seats = steps.filter(|step| step.unit.0 < chart.seats());
        let known: Vec<Known> = seats
            .map(|step| Known {
                thing: Thing::Seat(step.unit),
                version: step.version.0,
                state: match step.to {
                    UnitState::Held { until, .. } => KnownState::Held {
                        until,
                        who: who_has(inventory, step.to),
                    },
                    UnitState::Sold(_) => KnownState::Sold,
                    UnitState::Free | UnitState::Blocked => KnownState::Free,
                },
            })
            .collect();
        for known in known.chunks(SHIELD_UNITS_MAX) {
            self.send(Message::Known(commit.event, known.to_vec()));
        }
    }

    /// Counts notes that did not reach the shield.
    pub(crate) fn lost(&self, notes: usize) {
        let notes = u64::try_from(notes).unwrap_or(u64::MAX);
        self.metrics.shield_notes_dropped.inc_by(notes);
    }
}

impl Message {
    fn notes(&self) -> u64 {
        match self {
            Self::Known(_, known) => u64::try_from(known.len()).unwrap_or(u64::MAX),
            Self::Drop(..) => 0,
        }
    }
}

/// Builds the state of a full area, as a refusal by the ledger names it.
pub(crate) fn full(area: AreaNo) -> Known {
    Known {
        thing: Thing::Area(area),
        version: 0,
        state: KnownState::Sold,
    }
}

/// Several messages merged: the newest note of each unit, zone by zone, then the claims.
#[derive(Debug, Default)]
pub(crate) struct Round {
    known: BTreeMap<(Zone, u32), Known>,
    pub(crate) drops: Vec<(Who, Part)>,
}

impl Round {
    /// Adds the state of units of one event of a ledger, unless a newer version is there.
    pub(crate) fn add(
        &mut self,
        (ledger, event): (u64, EventNo),
        chart: &Chart,
        known: Vec<Known>,
    ) {
        for known in known {
            let (no, number) = match known.thing {
                Thing::Seat(seat) => (zone_of_seat(chart, seat), seat.0),
                Thing::Area(area) => (zone_of_areas(chart), area.0),
            };
            let zone = Zone { ledger, event, no };
            let newest = self.known.entry((zone, number)).or_insert(known);
            if newest.version <= known.version {
                *newest = known;
            }
        }
    }

    /// Adds claims to be released.
    pub(crate) fn drop_claims(&mut self, who: Who, parts: Vec<Part>) {
        let claimed = parts.into_iter().filter(Part::is_claimed);
        self.drops.extend(claimed.map(|part| (who, part)));
    }

    /// Lists the notes of each zone, with the times that are left at `now`.
    pub(crate) fn notes(&self, now: Timestamp) -> BTreeMap<Zone, Vec<Note>> {
        let mut zones: BTreeMap<Zone, Vec<Note>> = BTreeMap::new();
        for ((zone, number), known) in &self.known {
            let notes = zones.entry(*zone).or_default();
            notes.push(note(*number, *known, now));
        }
        zones
    }
}

fn note(number: u32, known: Known, now: Timestamp) -> Note {
    let (kind, left, who) = match (known.state, known.thing) {
        (KnownState::Held { until, who }, _) => {
            let left = now.until(until).ms().saturating_sub(SHIELD_EARLY_MS);
            (Kind::Held, left.min(SHIELD_BELIEF_MS), who)
        }
        (KnownState::Sold, Thing::Seat(_)) => {
            // Spread by the number: whole rows are sold at once.
            let spread = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let left = SHIELD_BELIEF_MS - spread % SHIELD_SOLD_JITTER_MS;
            (Kind::Sold, left, Who::default())
        }
        (KnownState::Sold, Thing::Area(_)) => (Kind::Sold, SHIELD_FULL_MS, Who::default()),
        (KnownState::Free, _) => (Kind::Free, 0, Who::default()),
    };
    Note {
        number,
        version: known.version,
        kind,
        left: Span::from_ms(left),
        who,
    }
}

#[cfg(test)]
mod tests {
    use soldonce_core::UnitNo;

    use super::super::Contents;
    use super::*;

    fn chart() -> Chart {
        let grid = r#"{"format":"grid","rows":2,"seats_per_row":900,"category":"S"}"#;
        crate::chart::read(grid.as_bytes()).unwrap().chart
    }

    fn seat(number: u32, version: u64, state: KnownState) -> Known {
        Known {
            thing: Thing::Seat(UnitNo(number)),
            version,
            state,
        }
    }

    fn held(until_ms: i64) -> KnownState {
        KnownState::Held {
            until: Timestamp::from_ms(until_ms),
            who: Who(5),
        }
    }

    fn notes(known: Vec<Known>, now_ms: i64) -> Vec<Note> {
        let mut round = Round::default();
        round.add((7, EventNo(0)), &chart(), known);
        let zones = round.notes(Timestamp::from_ms(now_ms));
        zones.into_values().flatten().collect()
    }

    #[test]
    fn a_hold_is_let_go_of_before_the_ledger_does() {
        let left = |now_ms| notes(vec![seat(1, 3, held(10_000))], now_ms)[0].left.ms();
        assert_eq!((left(0), left(9_749), left(9_750)), (9_750, 1, 0));
        assert_eq!(left(20_000), 0);
        let long = notes(vec![seat(1, 3, held(3_600_000))], 0)[0];
        assert_eq!(long.left.ms(), SHIELD_BELIEF_MS);
        let note = notes(vec![seat(1, 3, held(10_000))], 0)[0];
        assert_eq!((note.kind, note.who, note.version), (Kind::Held, Who(5), 3));
    }

    #[test]
    fn what_is_sold_is_asked_for_again_at_different_times() {
        let all = (0..1_800).map(|number| seat(number, 1, KnownState::Sold));
        let mut spans: Vec<u64> = notes(all.collect(), 0)
            .iter()
            .map(|note| note.left.ms())
            .collect();
        let least = SHIELD_BELIEF_MS - SHIELD_SOLD_JITTER_MS;
        assert!(
            spans
                .iter()
                .all(|span| (least..=SHIELD_BELIEF_MS).contains(span))
        );
        spans.sort_unstable();
        spans.dedup();
        assert!(spans.len() > 1_500, "{}", spans.len());
    }

    #[test]
    fn the_newest_note_of_a_unit_is_sent() {
        let known = vec![
            seat(1, 3, held(10_000)),
            seat(2, 8, KnownState::Free),
            seat(1, 4, KnownState::Sold),
            seat(2, 7, held(10_000)),
        ];
        let notes = notes(known, 0);
        let shown: Vec<_> = notes
            .iter()
            .map(|it| (it.number, it.version, it.kind))
            .collect();
        assert_eq!(shown, [(1, 4, Kind::Sold), (2, 8, Kind::Free)]);
    }

    #[test]
    fn an_area_is_full_for_a_moment_and_never_claimed() {
        let note = notes(vec![full(AreaNo(0))], 0)[0];
        assert_eq!((note.kind, note.left.ms()), (Kind::Sold, SHIELD_FULL_MS));
        let zone = Zone {
            ledger: 7,
            event: EventNo(0),
            no: 0,
        };
        let parts = [
            Contents::Seats(vec![UnitNo(1)]),
            Contents::Areas(vec![AreaNo(0)]),
        ];
        let parts = parts.map(|contents| Part { zone, contents });
        let mut round = Round::default();
        round.drop_claims(Who(5), parts.to_vec());
        assert_eq!(round.drops, [(Who(5), parts[0].clone())]);
    }
}
