//! The shield in process: refuses requests for taken seats without asking the ledger, and grants
//! nothing. It has one word per seat, read without a lock; a sequence lock (seqlock) tells a reader
//! that a commit came in between, and then the ledger decides.

mod memory;
mod word;

use std::sync::atomic::{AtomicU64, Ordering, fence};

use soldonce_core::{
    Availability, Chart, Commit, Conflict, ConflictState, Event, EventNo, Holder, Inventory,
    Seating, Seq, StateKind, Timestamp, Unavailable, UnitNo, UnitState, Version, alternatives_near,
};

use self::memory::Memory;
use self::word::{Tag, Word};
use crate::shield::{Known, KnownState, Thing, Who};

/// Whether other servers sell the same units and share a shield with this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Company {
    /// There is no shield between servers.
    None,
    Servers,
}

/// The seats of one event after the last commit.
pub struct LocalShield {
    seats: Box<[AtomicU64]>,
    /// What a shield between servers is told in addition.
    memory: Memory,
    /// The sequence number of the seqlock: rises with every write, and is odd during one.
    stamp: AtomicU64,
    /// The number of the last commit that is published, which a refusal carries.
    shown: AtomicU64,
}

impl LocalShield {
    /// Creates the shield of an event from a ledger's inventory.
    pub(super) fn of(inventory: &Inventory, event: &Event, company: Company) -> Self {
        let seats = UnitNo(event.chart.seats()).index();
        let seating = inventory.seating(event.no);
        let units = seating.map(Seating::units).unwrap_or_default();
        let units = units.get(..seats).unwrap_or(units);
        let word = |state| AtomicU64::new(Word::new(state, Tag::of(who_has(inventory, state))).0);
        Self {
            seats: units.iter().map(|unit| word(unit.state)).collect(),
            memory: match company {
                Company::None => Memory::default(),
                Company::Servers => Memory::of(inventory, units),
            },
            stamp: AtomicU64::new(0),
            shown: AtomicU64::new(inventory.seq(event.no).0),
        }
    }

    /// Applies a commit. One caller at a time: the ledger's writer.
    pub(super) fn note(&self, inventory: &Inventory, commit: &Commit) {
        let steps = commit.transitions.iter();
        let states = steps.map(|step| (step.unit, step.to, step.version));
        self.write(inventory, states, Some(commit.seq));
    }

    /// Copies the state of `units` from the inventory. One caller at a time for each event: one
    /// that changed its inventory.
    pub(super) fn refresh(
        &self,
        inventory: &Inventory,
        event: EventNo,
        units: impl Iterator<Item = UnitNo>,
    ) {
        if let Some(seating) = inventory.seating(event) {
            let states = units.map(|no| {
                let unit = seating.unit(no);
                (no, unit.state, unit.version)
            });
            self.write(inventory, states, None);
        }
    }

    fn write(
        &self,
        inventory: &Inventory,
        states: impl Iterator<Item = (UnitNo, UnitState, Version)>,
        seq: Option<Seq>,
    ) {
        let before = self.stamp.load(Ordering::Relaxed);
        self.stamp.store(before.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (unit, state, version) in states {
            if let Some(seat) = self.seats.get(unit.index()) {
                let who = who_has(inventory, state);
                seat.store(Word::new(state, Tag::of(who)).0, Ordering::Relaxed);
                self.memory.keep(unit, version, who);
            }
        }
        if let Some(seq) = seq {
            self.shown.store(seq.0, Ordering::Relaxed);
        }
        self.stamp.store(before.wrapping_add(2), Ordering::Release);
    }

    /// Notes that the commits up to this number are published.
    pub(super) fn show(&self, seq: Seq) {
        self.shown.store(seq.0, Ordering::Relaxed);
    }

    /// Returns a refusal if another holder has one of the wanted seats, which are sorted. None asks
    /// the ledger.
    ///
    /// On SQLite, a refusal is exactly what the ledger would have said at the commit number it
    /// carries; on PostgreSQL the seats may be ahead of or behind that number. When a seat may be
    /// the holder's own, or a commit came in between, the ledger is asked.
    pub fn try_seats(
        &self,
        chart: &Chart,
        wanted: &[UnitNo],
        holder: &Holder,
        now: Timestamp,
    ) -> Option<Box<Unavailable>> {
        let before = self.stamp.load(Ordering::Acquire);
        let conflicts = self.conflicts(wanted, Tag::of(Who::of(holder)), now)?;
        if conflicts.is_empty() {
            return None;
        }
        let seq = Seq(self.shown.load(Ordering::Relaxed));
        let hall = ShieldAt {
            shield: self,
            now,
            taken: &[],
        };
        let alternatives = alternatives_near(chart, &hall, wanted);
        fence(Ordering::Acquire);
        let same = self.stamp.load(Ordering::Relaxed) == before;
        let refusal = Unavailable {
            conflicts,
            alternatives,
            seq,
        };
        (same && before.is_multiple_of(2)).then(|| Box::new(refusal))
    }

    /// Tells whether a seat may be in a hold of this holder.
    pub(crate) fn may_be_held_by(&self, unit: UnitNo, holder: &Holder) -> bool {
        let own = Tag::of(Who::of(holder));
        let is_own = |word: Word| word.kind() == StateKind::Held && word.tag() == own;
        self.word(unit).is_some_and(is_own)
    }

    /// Lists every conflict; `None` when one of the seats may be the holder's own.
    fn conflicts(&self, wanted: &[UnitNo], own: Tag, now: Timestamp) -> Option<Vec<Conflict>> {
        let mut conflicts = Vec::new();
        for unit in wanted {
            let word = self.word(*unit)?;
            if word.is_available(now) {
                continue;
            }
            let (state, retry_after) = match word.kind() {
                StateKind::Held if word.tag() == own => return None,
                StateKind::Held => (ConflictState::Held, Some(now.until(word.until()))),
                StateKind::Sold => (ConflictState::Sold, None),
                StateKind::Blocked | StateKind::Free => (ConflictState::Blocked, None),
            };
            conflicts.push(Conflict::Seat {
                unit: *unit,
                state,
                retry_after,
            });
        }
        Some(conflicts)
    }

    /// Builds a refusal from `conflicts` that other servers know and this one does not yet. None of
    /// them is offered as an alternative. It carries the commit number that is published.
    pub(crate) fn refusal(
        &self,
        chart: &Chart,
        wanted: &[UnitNo],
        conflicts: Vec<Conflict>,
        now: Timestamp,
    ) -> Unavailable {
        let seat = |conflict: &Conflict| match conflict {
            Conflict::Seat { unit, .. } => Some(*unit),
            Conflict::Area { .. } => None,
        };
        let taken: Vec<UnitNo> = conflicts.iter().filter_map(seat).collect();
        let hall = ShieldAt {
            shield: self,
            now,
            taken: &taken,
        };
        Unavailable {
            alternatives: alternatives_near(chart, &hall, wanted),
            conflicts,
            seq: Seq(self.shown.load(Ordering::Relaxed)),
        }
    }

    /// Returns the state of a seat, for servers that know an older one. None while a commit is
    /// applied, and none without a shield between servers.
    pub(crate) fn known(&self, unit: UnitNo) -> Option<Known> {
        let before = self.stamp.load(Ordering::Acquire);
        let (word, (version, who)) = (self.word(unit)?, self.memory.of_seat(unit)?);
        fence(Ordering::Acquire);
        let same = self.stamp.load(Ordering::Relaxed) == before;
        let state = match word.kind() {
            StateKind::Held => KnownState::Held {
                until: word.until(),
                who,
            },
            StateKind::Sold => KnownState::Sold,
            StateKind::Free | StateKind::Blocked => KnownState::Free,
        };
        (same && before.is_multiple_of(2)).then_some(Known {
            thing: Thing::Seat(unit),
            version: version.0,
            state,
        })
    }

    fn word(&self, unit: UnitNo) -> Option<Word> {
        self.seats
            .get(unit.index())
            .map(|word| Word(word.load(Ordering::Relaxed)))
    }
}

/// Finds the holder of a unit in this state; `Who(0)` if it is not held.
pub(crate) fn who_has(inventory: &Inventory, state: UnitState) -> Who {
    match state {
        UnitState::Held { hold, .. } => inventory
            .hold(hold)
            .map_or(Who::default(), |hold| Who::of(&hold.holder)),
        UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => Who::default(),
    }
}

/// The availability of the seats by the shield at one time.
struct ShieldAt<'a> {
    shield: &'a LocalShield,
    now: Timestamp,
    /// More seats that are taken, sorted.
    taken: &'a [UnitNo],
}

impl Availability for ShieldAt<'_> {
    fn is_available(&self, unit: UnitNo) -> bool {
        let word = self.shield.word(unit);
        word.is_some_and(|word| word.is_available(self.now))
            && self.taken.binary_search(&unit).is_err()
    }
}
