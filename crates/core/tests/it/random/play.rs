//! Carries random operations out and judges each step.

use std::collections::{BTreeMap, BTreeSet};

use soldonce_core::{
    Applied, BookingId, Command, EventNo, HoldId, Inventory, Policy, Rejection, Seq, Timestamp,
    Unit, UnitNo, Wish,
};

use super::ops::{Op, Time};
use super::{checks, oracle};
use crate::world::{World, rows_and_floor};

/// What a command reached: which one, and the code of its refusal or `taken`.
pub(super) type Mark = (&'static str, &'static str);

/// What is wrong: the promise that was broken, and how.
pub(super) type Fault = String;

pub(super) struct Play {
    pub(super) world: World,
    pub(super) events: Vec<EventNo>,
    pub(super) holds: Vec<HoldId>,
    pub(super) bookings: Vec<BookingId>,
    /// The units as the transitions left them.
    pub(super) replayed: BTreeMap<(EventNo, UnitNo), Unit>,
    /// The ledger's time as it must be.
    pub(super) clock: Timestamp,
    pub(super) marks: BTreeSet<Mark>,
    /// Why commands were refused, the numbers of commits left out.
    pub(super) refusals: Vec<Rejection>,
}

/// Three small rows and a floor; and another event.
pub(super) fn start(policy: &Policy) -> Play {
    let mut world = World::new(rows_and_floor(&[5, 3, 2], 5), policy.clone());
    let other = world.add_event("matinee", rows_and_floor(&[3], 2), policy.clone());
    let events = vec![world.event, other];
    let clock = world.now;
    Play {
        world,
        events,
        holds: Vec::new(),
        bookings: Vec::new(),
        replayed: BTreeMap::new(),
        clock,
        marks: BTreeSet::new(),
        refusals: Vec::new(),
    }
}

impl Play {
    /// Carries one operation out and tells what it broke.
    pub(super) fn step(&mut self, op: &Op) -> Result<(), Fault> {
        let command = match op {
            Op::Wait(time) => {
                self.wait(*time);
                return Ok(());
            }
            Op::Restart => {
                self.restart();
                return Ok(());
            }
            Op::Sweep(limit) => Command::Sweep {
                limit: usize::from(*limit),
            },
            Op::OnEvent(event, what) => self.on_event(*event, what),
            Op::OnHold(on, what) => self.on_hold(on, what),
            Op::OnBooking(booking, what) => self.on_booking(*booking, what),
        };
        self.apply(&command)
    }

    fn apply(&mut self, command: &Command) -> Result<(), Fault> {
        self.clock = self.clock.max(self.world.now);
        let expected = oracle::verdict(self, command);
        let before = checks::Before::of(self, command);
        let result = self.world.apply(command.clone());
        self.marks.insert((name(command), marked(&result)));
        match &result {
            Ok(applied) => self.note(applied),
            Err(Rejection::UnitUnavailable(refusal)) => {
                let mut refusal = refusal.clone();
                refusal.seq = Seq::default();
                self.refusals.push(Rejection::UnitUnavailable(refusal));
            }
            Err(rejection) => self.refusals.push(rejection.clone()),
        }
        let violations = self.world.violations();
        if !violations.is_empty() {
            let shown: Vec<String> = violations.iter().map(ToString::to_string).collect();
            return Err(format!("{} after {command:?}", shown.join("; ")));
        }
        before.check(self, &result)?;
        checks::state(self)?;
        oracle::check(self, command, &expected, &result)
    }

    fn note(&mut self, applied: &Applied) {
        for id in &applied.holds {
            if !self.holds.contains(id) {
                self.holds.push(*id);
            }
        }
        for id in &applied.bookings {
            if !self.bookings.contains(id) {
                self.bookings.push(*id);
            }
        }
    }

    fn wait(&mut self, time: Time) {
        let next = self.world.inventory.next_expiry().unwrap_or(self.world.now);
        let next = next.max(self.world.now).ms();
        let now = match time {
            Time::Ms(ms) => self.world.now.ms() + i64::from(ms),
            Time::BeforeEnd => next - 1,
            Time::AtEnd => next,
            Time::AfterEnd => next + 1,
            Time::Back(ms) => self.world.now.ms() - i64::from(ms),
        };
        self.world.now = Timestamp::from_ms(now);
    }

    /// Rebuilds the inventory from its parts, as a ledger does when it starts.
    fn restart(&mut self) {
        let old = std::mem::take(&mut self.world.inventory);
        let mut new = Inventory::new();
        new.restore_clock(old.clock());
        for event in old.events() {
            new.restore_event((**event).clone(), old.seq(event.no));
            let units = old.seating(event.no).unwrap().units();
            for (number, unit) in (0..).map(UnitNo).zip(units) {
                new.restore_unit(event.no, number, *unit).unwrap();
            }
        }
        for booking in old.bookings() {
            new.restore_booking(booking.clone());
            let sold = booking
                .lines
                .iter()
                .filter(|line| checks::is_sold(line))
                .count();
            let sold = u32::try_from(sold).unwrap();
            if sold > 0 {
                new.restore_bought(booking.event, &booking.holder, sold);
            }
        }
        for hold in old.holds() {
            new.restore_hold(hold.clone());
        }
        self.world.inventory = new;
    }
}

/// Whether a command had no effect.
pub(super) fn had_no_effect(result: &Result<Applied, Rejection>) -> bool {
    result
        .as_ref()
        .map_or(true, |applied| !applied.has_effect())
}

fn marked(result: &Result<Applied, Rejection>) -> &'static str {
    match result {
        Err(rejection) => rejection.code(),
        Ok(applied) if applied.holds.len() > 1 => "taken from others",
        Ok(applied) if applied.bookings.len() > 1 => "moved other bookings",
        Ok(applied) if applied.has_effect() => "taken",
        Ok(_) => "no effect",
    }
}

fn name(command: &Command) -> &'static str {
    match command {
        Command::CreateEvent(_) => "create event",
        Command::UpdateEvent { .. } => "update policy",
        Command::CancelEvent { .. } => "cancel event",
        Command::Hold(new) => match &new.wish {
            Wish::Named(_) => "hold",
            Wish::Best { .. } => "best",
        },
        Command::Change(_) => "change",
        Command::Extend { .. } => "extend",
        Command::Checkout { .. } => "checkout",
        Command::Abandon { .. } => "abandon",
        Command::Payment(_) => "payment",
        Command::Release { .. } => "release",
        Command::Revoke { .. } => "revoke",
        Command::Sweep { .. } => "sweep",
        Command::Confirm { .. } => "confirm",
        Command::ConfirmFree { .. } => "confirm free",
        Command::Sell { .. } => "sell",
        Command::Cancel { .. } => "cancel",
        Command::Refund { .. } => "refund",
        Command::SettleRefund { .. } => "settle refund",
        Command::Exchange { .. } => "exchange",
        Command::Block { .. } => "block",
        Command::Unblock { .. } => "unblock",
    }
}
