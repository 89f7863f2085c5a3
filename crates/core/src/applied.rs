//! What a command did: the answer, and everything that must become durable with it.

use std::sync::Arc;

use crate::{
    Booking, BookingId, Effect, Event, EventNo, Hold, HoldId, Holder, Origin, Seq, Text, Timestamp,
    Transition, UnitNo,
};

/// One commit of one event: its transitions in the order they were made. The audit, the feed and
/// the ledger's rows are written from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub event: EventNo,
    /// Its number, dense per event.
    pub seq: Seq,
    /// Its time on the ledger's clock.
    pub at: Timestamp,
    /// Who asked, and in which request.
    pub origin: Origin,
    pub reason: Option<Text>,
    pub transitions: Vec<Transition>,
}

/// The answer to a command that was taken.
#[derive(Clone, Debug)]
pub enum Answer {
    EventCreated(Arc<Event>),
    /// The event that was there already, or was changed.
    Event(Arc<Event>),
    Held(Hold),
    /// The holder's own hold of exactly these units (model.md 4).
    OwnHold(Hold),
    Hold(Hold),
    Booked(Booking),
    Booking(Booking),
    /// These units were blocked or unblocked.
    Units(EventNo, Vec<UnitNo>),
    /// How many units the holds had that were written down as ended.
    Swept(usize),
    /// How many holds end earlier on a clock that was set back.
    ClockCorrected(usize),
}

/// What a command did.
#[derive(Clone, Debug)]
pub struct Applied {
    pub answer: Answer,
    /// The transitions, one commit for each event that was touched.
    pub commits: Vec<Commit>,
    pub holds: Vec<HoldId>,
    pub bookings: Vec<BookingId>,
    /// Effects that must be carried out at the payment provider.
    pub effects: Vec<Effect>,
    /// Effects that are done, or must not be carried out any more.
    pub done_effects: Vec<Effect>,
    pub event: Option<EventNo>,
    /// The other rows that it was decided on.
    pub basis: Basis,
}

/// The rows that a decision rests on besides those that it changes and that of its event. A ledger of
/// several servers compares them in its write; a rule that looked at anything else would be right on one
/// server and race on two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Basis {
    /// Holders whose account was read.
    pub holders: Vec<Holder>,
    /// Units whose state was read and not changed.
    pub units: Vec<UnitNo>,
}

impl Applied {
    /// Returns an answer that changed nothing.
    pub fn unchanged(answer: Answer) -> Self {
        Self {
            answer,
            commits: Vec::new(),
            holds: Vec::new(),
            bookings: Vec::new(),
            effects: Vec::new(),
            done_effects: Vec::new(),
            event: None,
            basis: Basis::default(),
        }
    }

    /// Lists its transitions, commit by commit.
    pub fn steps(&self) -> impl Iterator<Item = &Transition> + Clone {
        self.commits.iter().flat_map(|commit| &commit.transitions)
    }

    /// Tells whether anything must become durable.
    pub fn has_effect(&self) -> bool {
        !(self.commits.is_empty()
            && self.holds.is_empty()
            && self.bookings.is_empty()
            && self.effects.is_empty()
            && self.done_effects.is_empty()
            && self.event.is_none())
    }
}
