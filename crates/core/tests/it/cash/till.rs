//! An inventory and a provider, and all that goes between them.

use std::collections::BTreeSet;

use soldonce_core::{
    Amount, Answer, Authority, Booking, BookingId, BookingState, Command, Effect, GivenLines,
    HoldId, LineChoice, LineState, OnHold, PaymentReport, Policy, Selection, UnitNo,
};

use super::provider::Provider;
use super::{Fault, Op, ToldAtOnce};
use crate::world::{World, exchange_of, on, rows_and_floor, text};

/// An inventory with a provider, and who goes between them.
pub(super) struct Till {
    pub(super) world: World,
    provider: Provider,
    holds: Vec<HoldId>,
    bookings: Vec<BookingId>,
    /// What staff sent back for units that are kept.
    goodwill: i64,
}

impl Till {
    pub(super) fn new(policy: &Policy) -> Self {
        Self {
            world: World::new(rows_and_floor(&[4, 4], 12), policy.clone()),
            provider: Provider::default(),
            holds: Vec::new(),
            bookings: Vec::new(),
            goodwill: 0,
        }
    }

    fn hold(&self, number: u8) -> HoldId {
        latest(&self.holds, number).unwrap_or(HoldId::from_bits(0))
    }

    fn booking(&self, number: u8) -> BookingId {
        latest(&self.bookings, number).unwrap_or(BookingId::from_bits(0))
    }

    /// Some of the units that a booking owns.
    fn lines(&self, booking: BookingId, picks: &[u8]) -> Vec<UnitNo> {
        let found = self.world.inventory.booking(booking);
        let lines = found
            .map(|found| found.lines.as_slice())
            .unwrap_or_default();
        let sold = lines.iter().filter(|line| line.state == LineState::Sold);
        let sold: Vec<UnitNo> = sold.map(|line| line.unit).collect();
        let pick = |number: &u8| sold.get(usize::from(*number) % sold.len().max(1)).copied();
        picks.iter().filter_map(pick).collect()
    }

    pub(super) fn step(&mut self, op: &Op) -> Result<(), Fault> {
        match op {
            Op::Hold(who, seats, places) => self.take(*who, seats, *places),
            Op::Checkout(hold, given) => self.checkout(*hold, given.as_ref()),
            Op::MoveUp(booking, places, way) => {
                self.take(0, &[], *places);
                self.checkout(0, Some(&(*booking, vec![0, 1, 2, 3])));
                let new = self.booking(0);
                self.provider.buyer(new, *way);
                self.tell(new, 0);
            }
            Op::Buyer(booking, way, heard) => {
                let id = self.booking(*booking);
                self.provider.buyer(id, *way);
                if let ToldAtOnce::Yes = heard {
                    self.tell(id, 0);
                }
            }
            Op::Tell(booking, age) => self.tell(self.booking(*booking), usize::from(*age)),
            Op::CarryOut(number, heard) => self.carry_out(usize::from(*number), *heard)?,
            Op::Cancel(booking, lines) => self.cancel(*booking, lines),
            Op::Exchange(booking, lines, hold) => {
                let booking = self.booking(*booking);
                let units = self.lines(booking, lines);
                self.apply(exchange_of(booking, units, self.on(*hold)));
            }
            Op::Refund(booking, halves) => {
                let booking = self.booking(*booking);
                let minor = i64::from(*halves) * 500;
                let amount = Amount::from_minor(minor);
                if self.apply(Command::Refund { booking, amount }) {
                    self.goodwill += minor;
                }
            }
            Op::Settle(booking) => self.settle_elsewhere(self.booking(*booking)),
            Op::Abandon(hold) => {
                self.apply(Command::Abandon {
                    on: self.on(*hold),
                    booking: None,
                });
            }
            Op::Release(hold) => {
                self.apply(Command::Release { on: self.on(*hold) });
            }
            Op::Revoke(hold) => {
                let (hold, reason) = (self.hold(*hold), text("fraud"));
                self.apply(Command::Revoke { hold, reason });
            }
            Op::Wait(ms) => {
                self.world.wait(u64::from(*ms));
            }
            Op::CallOff => {
                let (event, reason) = (self.world.event, text("rain"));
                self.apply(Command::CancelEvent { event, reason });
            }
        }
        self.look()
    }

    fn on(&self, hold: u8) -> OnHold {
        OnHold {
            by: Authority::Staff,
            ..on(self.hold(hold))
        }
    }

    fn take(&mut self, who: u8, seats: &[u8], places: u8) {
        let who = ["ann", "bob"][usize::from(who % 2)];
        let all = ["A-1", "A-2", "A-3", "A-4", "B-1", "B-2"];
        let seats = seats.iter().map(|seat| all[usize::from(*seat) % all.len()]);
        let seats: BTreeSet<&str> = seats.collect();
        let mut names: Vec<String> = seats.into_iter().map(str::to_owned).collect();
        if places > 0 {
            names.push(format!("floor*{places}"));
        }
        if let Ok(applied) = self.world.try_hold(who, &names.join(" ")) {
            self.holds.extend(&applied.holds);
            self.follow(applied.effects, &applied.done_effects);
        }
    }

    fn cancel(&mut self, booking: u8, lines: &[u8]) {
        let booking = self.booking(booking);
        let lines = match self.lines(booking, lines) {
            units if units.is_empty() => LineChoice::All,
            units => LineChoice::Some {
                units,
                places: Selection::default(),
            },
        };
        let by = Authority::Staff;
        self.apply(Command::Cancel { booking, by, lines });
    }

    fn checkout(&mut self, hold: u8, given: Option<&(u8, Vec<u8>)>) {
        let exchange = given.map(|(booking, lines)| {
            let booking = self.booking(*booking);
            let units = self.lines(booking, lines);
            GivenLines { booking, units }
        });
        let command = Command::Checkout {
            on: self.on(hold),
            booking: self.world.mint_booking(),
            reference: None,
            exchange,
        };
        if let Ok(applied) = self.world.apply(command)
            && let Answer::Booked(booking) = &applied.answer
        {
            self.provider.create(booking);
            self.bookings.push(booking.id);
            self.follow(applied.effects, &applied.done_effects);
        }
    }

    fn apply(&mut self, command: Command) -> bool {
        let applied = self.world.apply(command);
        let is_taken = applied.is_ok();
        if let Ok(applied) = applied {
            self.follow(applied.effects, &applied.done_effects);
        }
        is_taken
    }

    fn follow(&mut self, effects: Vec<Effect>, settled: &[Effect]) {
        self.provider
            .open
            .retain(|effect| !settled.contains(effect));
        self.provider.open.extend(effects);
    }

    fn tell(&mut self, id: BookingId, age: usize) {
        if self.bookings.contains(&id) {
            let report = self.provider.report(id, age);
            self.apply(Command::Payment(Box::new(report)));
        }
    }

    /// Staff see at the provider what did not go back, and send it another way.
    fn settle_elsewhere(&mut self, booking: BookingId) {
        self.tell(booking, 0);
        let found = self.world.inventory.booking(booking);
        let payment = found.and_then(|found| found.payment.as_ref());
        if let Some(amount) = payment.map(|payment| payment.owed()) {
            self.apply(Command::SettleRefund { booking, amount });
        }
    }

    /// What staff settled elsewhere is not asked of the provider.
    fn at_provider(&self, effect: Effect) -> Effect {
        let Effect::Refund {
            booking,
            amount,
            total,
        } = effect
        else {
            return effect;
        };
        let found = self.world.inventory.booking(booking).unwrap();
        let total = total.less(found.payment.as_ref().unwrap().elsewhere);
        Effect::Refund {
            booking,
            amount,
            total,
        }
    }

    /// The effects of one booking are carried out one after the other.
    fn carry_out(&mut self, number: usize, heard: ToldAtOnce) -> Result<(), Fault> {
        let open = &self.provider.open;
        let Some(picked) = open.get(number % open.len().max(1)) else {
            return Ok(());
        };
        let booking = picked.booking();
        let first = open.iter().find(|effect| effect.booking() == booking);
        let effect = *first.unwrap();
        let asked = self.at_provider(effect);
        let report = self.provider.carry_out(asked)?;
        if let ToldAtOnce::Yes = heard {
            let settles = report.settles.map(|_| effect);
            let report = PaymentReport { settles, ..report };
            self.apply(Command::Payment(Box::new(report)));
        }
        Ok(())
    }

    /// What holds at any time: no buyer may be sent more than the units cost.
    fn look(&self) -> Result<(), Fault> {
        for booking in self.world.inventory.bookings() {
            let Some(payment) = &booking.payment else {
                continue;
            };
            let is_pending = booking.state == BookingState::PendingPayment;
            if booking.confirmed_at.is_some() && !is_pending && payment.left() > sold(booking) {
                return Err(format!("more is left than its units cost: {booking:?}"));
            }
        }
        Ok(())
    }

    /// Everything ends: holds by the clock, effects by the provider, and all of it is told.
    pub(super) fn settle(&mut self) -> Result<(), Fault> {
        for _ in 0..4 {
            self.world.wait(600_000);
            self.apply(Command::Sweep { limit: usize::MAX });
            for id in self.bookings.clone() {
                self.tell(id, 0);
            }
            self.carry_all_out()?;
        }
        self.look()
    }

    fn carry_all_out(&mut self) -> Result<(), Fault> {
        for number in 0..100 {
            if self.provider.open.is_empty() {
                return Ok(());
            }
            self.carry_out(number, ToldAtOnce::Yes)?;
        }
        Err(format!("stuck: {:?}", self.provider.open))
    }

    /// Captured less given back, by the provider or elsewhere, is what the sold units cost.
    pub(super) fn judge(&self) -> Result<(), Fault> {
        let taken: i64 = self
            .provider
            .all()
            .map(|(_, of)| of.captured - of.back())
            .sum();
        let bookings = || self.world.inventory.bookings();
        let payments = bookings().filter_map(|booking| booking.payment.as_ref());
        let taken = taken - payments.map(|of| of.elsewhere.minor()).sum::<i64>();
        let owed: i64 = bookings().map(|booking| sold(booking).minor()).sum();
        if taken > owed || taken < owed - self.goodwill {
            let goodwill = self.goodwill;
            return Err(format!(
                "{taken} is kept for units of {owed}, {goodwill} sent back"
            ));
        }
        match self.provider.all().find(|(_, of)| of.is_reserved()) {
            Some(found) => Err(format!("reserved for ever: {found:?}")),
            None => Ok(()),
        }
    }
}

fn latest<T: Copy>(of: &[T], number: u8) -> Option<T> {
    of.iter()
        .rev()
        .nth(usize::from(number) % of.len().max(1))
        .copied()
}

fn sold(booking: &Booking) -> Amount {
    let lines = booking.lines.iter();
    let sold = lines.filter(|line| line.state == LineState::Sold);
    Amount::sum(sold.map(|line| line.price))
}
