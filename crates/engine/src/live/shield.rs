//! The shield in process: refuses losers without asking the ledger, and grants nothing. One word per
//! seat, read without a lock; a sequence lock tells a reader that a commit came in between, and then
//! the ledger decides.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use soldonce_core::{
    Availability, Chart, Commit, Conflict, ConflictState, Event, EventNo, Holder, Inventory, Seq,
    StateKind, Timestamp, Unavailable, UnitNo, UnitState, alternatives_near,
};

/// What a shield says about a wish.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing known against it: ask the ledger.
    Passed,
    /// Somebody else has a wanted seat.
    Refused(Box<Unavailable>),
}

/// The seats of one event, as the last commit left them.
pub struct LocalShield {
    seats: Box<[AtomicU64]>,
    /// Rises with every commit that is noted; odd meanwhile.
    stamp: AtomicU64,
    /// The number of the last commit that is shown: what a refusal carries.
    shown: AtomicU64,
}

/// A seat's word: state (2 bits), tag of its holder (20 bits), end of its hold in milliseconds
/// (42 bits, until the year 2109).
#[derive(Clone, Copy)]
struct Word(u64);

const UNTIL_BITS: u32 = 42;
const TAG_BITS: u32 = 20;
const UNTIL_MAX: u64 = (1 << UNTIL_BITS) - 1;
const TAG_MAX: u64 = (1 << TAG_BITS) - 1;

impl Word {
    fn new(state: UnitState, tag: Tag) -> Self {
        let until = match state {
            UnitState::Held { until, .. } => u64::try_from(until.ms()).unwrap_or(0).min(UNTIL_MAX),
            UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => 0,
        };
        let kind = match state.kind() {
            StateKind::Free => 0,
            StateKind::Held => 1,
            StateKind::Sold => 2,
            StateKind::Blocked => 3,
        };
        Self((kind << (UNTIL_BITS + TAG_BITS)) | (tag.0 << UNTIL_BITS) | until)
    }

    fn until(self) -> Timestamp {
        Timestamp::from_ms(i64::try_from(self.0 & UNTIL_MAX).unwrap_or(i64::MAX))
    }

    fn tag(self) -> Tag {
        Tag((self.0 >> UNTIL_BITS) & TAG_MAX)
    }

    fn kind(self) -> StateKind {
        match self.0 >> (UNTIL_BITS + TAG_BITS) {
            0 => StateKind::Free,
            1 => StateKind::Held,
            2 => StateKind::Sold,
            _ => StateKind::Blocked,
        }
    }

    fn is_available(self, now: Timestamp) -> bool {
        match self.kind() {
            StateKind::Free => true,
            StateKind::Held => self.until() <= now,
            StateKind::Sold | StateKind::Blocked => false,
        }
    }
}

/// A few bits of a holder. Equal tags mean "perhaps his own": the ledger knows.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tag(u64);

impl Tag {
    fn of(holder: &Holder) -> Self {
        let bytes = holder
            .caller
            .bytes()
            .iter()
            .chain(holder.name.as_str().as_bytes());
        let wide = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self((wide ^ (wide >> 32)) & TAG_MAX)
    }
}

impl LocalShield {
    /// The shield of a ledger's inventory.
    pub(super) fn of(inventory: &Inventory, event: &Event) -> Self {
        let seats = UnitNo(event.chart.seats()).index();
        let units = inventory
            .seating(event.no)
            .map(soldonce_core::Seating::units)
            .unwrap_or_default();
        let word = |state| AtomicU64::new(Word::new(state, tag_of(inventory, state)).0);
        Self {
            seats: units
                .iter()
                .take(seats)
                .map(|unit| word(unit.state))
                .collect(),
            stamp: AtomicU64::new(0),
            shown: AtomicU64::new(inventory.seq(event.no).0),
        }
    }

    /// Takes a commit over. One caller at a time: the ledger's writer.
    pub(super) fn note(&self, inventory: &Inventory, commit: &Commit) {
        let steps = commit.transitions.iter();
        let states = steps.map(|step| (step.unit, step.to));
        self.write(inventory, states, Some(commit.seq));
    }

    /// Takes units over as the inventory has them. One caller at a time for each event: whoever
    /// changed its inventory.
    pub(super) fn refresh(
        &self,
        inventory: &Inventory,
        event: EventNo,
        units: impl Iterator<Item = UnitNo>,
    ) {
        if let Some(seating) = inventory.seating(event) {
            let states = units.map(|unit| (unit, seating.unit(unit).state));
            self.write(inventory, states, None);
        }
    }

    fn write(
        &self,
        inventory: &Inventory,
        states: impl Iterator<Item = (UnitNo, UnitState)>,
        seq: Option<Seq>,
    ) {
        let before = self.stamp.load(Ordering::Relaxed);
        self.stamp.store(before.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (unit, state) in states {
            if let Some(seat) = self.seats.get(unit.index()) {
                let word = Word::new(state, tag_of(inventory, state));
                seat.store(word.0, Ordering::Relaxed);
            }
        }
        if let Some(seq) = seq {
            self.shown.store(seq.0, Ordering::Relaxed);
        }
        self.stamp.store(before.wrapping_add(2), Ordering::Release);
    }

    /// The commits up to this number are shown.
    pub(super) fn show(&self, seq: Seq) {
        self.shown.store(seq.0, Ordering::Relaxed);
    }

    /// Looks whether somebody else has one of the wanted seats, which are sorted.
    ///
    /// A refusal is exactly what the ledger would have said at the commit number it carries. When a
    /// seat may be the holder's own, or a commit came in between, the ledger is asked.
    pub fn try_seats(
        &self,
        chart: &Chart,
        wanted: &[UnitNo],
        holder: &Holder,
        now: Timestamp,
    ) -> Verdict {
        let before = self.stamp.load(Ordering::Acquire);
        let Some(conflicts) = self.conflicts(wanted, Tag::of(holder), now) else {
            return Verdict::Passed;
        };
        if conflicts.is_empty() {
            return Verdict::Passed;
        }
        let seq = Seq(self.shown.load(Ordering::Relaxed));
        let alternatives = alternatives_near(chart, &ShieldAt { shield: self, now }, wanted);
        fence(Ordering::Acquire);
        let same = self.stamp.load(Ordering::Relaxed) == before;
        if !same || before % 2 == 1 {
            return Verdict::Passed;
        }
        Verdict::Refused(Box::new(Unavailable {
            conflicts,
            alternatives,
            seq,
        }))
    }

    /// Every conflict; nothing when one of the seats may be the holder's own.
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

    fn word(&self, unit: UnitNo) -> Option<Word> {
        self.seats
            .get(unit.index())
            .map(|word| Word(word.load(Ordering::Relaxed)))
    }
}

fn tag_of(inventory: &Inventory, state: UnitState) -> Tag {
    match state {
        UnitState::Held { hold, .. } => inventory
            .hold(hold)
            .map_or(Tag(0), |hold| Tag::of(&hold.holder)),
        UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => Tag(0),
    }
}

/// The seats as the shield sees them at one time.
struct ShieldAt<'a> {
    shield: &'a LocalShield,
    now: Timestamp,
}

impl Availability for ShieldAt<'_> {
    fn is_available(&self, unit: UnitNo) -> bool {
        self.shield
            .word(unit)
            .is_some_and(|word| word.is_available(self.now))
    }
}
