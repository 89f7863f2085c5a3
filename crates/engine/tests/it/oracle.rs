//! The oracle of the differential runs: `core` behind the seam of a ledger, with nothing durable. It has what
//! those runs compare; API keys, webhooks and the lists of an event are not in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use soldonce_clock::Clock;
use soldonce_core::{
    Applied, Booking, BookingId, BookingState, Command, Commit, EventId, EventNo, History, Hold,
    HoldId, HoldTerms, Holder, Inventory, Origin, Payment, PaymentState, Rejection, Span,
    Timestamp, UnitNo,
};
use soldonce_engine::keys::{ApiKey, KeyId};
use soldonce_engine::ledger::{
    Done, Fingerprint, Ledger, LedgerFuture, MadeAt, MasterKey, Observer, OpenEffect, Page, Read,
    ScopedKey, Transaction, Webhooks, Write,
};
use soldonce_engine::reply::{self, ReplyKind, StoredReply};

/// Keeps everything in memory.
pub(crate) struct Oracle {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
}

#[derive(Default)]
struct State {
    inventory: Inventory,
    replies: BTreeMap<ScopedKey, (Fingerprint, StoredReply)>,
    commits: Vec<Commit>,
    open: Vec<OpenEffect>,
}

impl State {
    fn reply(&self, applied: &Applied) -> Option<StoredReply> {
        let event = reply::event_of(&applied.answer).and_then(|no| self.inventory.event(no));
        let seq = applied.commits.first().map(|commit| commit.seq);
        reply::render(event.map(|event| &**event), &applied.answer, seq)
    }

    fn decide(
        &mut self,
        now: Timestamp,
        asked: Transaction,
        observer: &dyn Observer,
    ) -> Result<Done, Rejection> {
        if let Some(key) = asked.key
            && let Some((fingerprint, reply)) = self.replies.get(&key.scoped)
        {
            let is_same = *fingerprint == key.fingerprint;
            let replayed = is_same.then(|| Done::Replayed(reply.clone()));
            return replayed.ok_or(Rejection::IdempotencyKeyReused);
        }
        let gives_back = matches!(
            asked.command,
            Command::Refund { .. } | Command::SettleRefund { .. } | Command::Cancel { .. }
        );
        let applied = self.inventory.apply(now, &asked.origin, asked.command)?;
        if let Some(key) = asked.key
            && applied.has_effect()
            && let Some(mut reply) = self.reply(&applied)
        {
            if gives_back {
                reply.kind = ReplyKind::GivenBack;
            }
            self.replies.insert(key.scoped, (key.fingerprint, reply));
        }
        let settled = |open: &OpenEffect| applied.done_effects.contains(&open.effect);
        self.open.retain(|open| !settled(open));
        let new = applied.effects.iter();
        self.open
            .extend(new.map(|&effect| OpenEffect { effect, at: now }));
        self.commits.extend(applied.commits.iter().cloned());
        observer.committed(&self.inventory, std::slice::from_ref(&applied));
        let seq = applied.commits.first().map(|commit| commit.seq);
        let answer = applied.answer;
        Ok(Done::Fresh { answer, seq })
    }
}

impl Oracle {
    /// Has no event.
    pub(crate) fn new(clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Self {
        observer.opened(&Inventory::new());
        Self {
            state: Mutex::default(),
            clock,
            observer,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> LedgerFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Ledger for Oracle {
    fn transact(&self, asked: Transaction) -> Write<'_, Done> {
        ready(self.state().decide(self.now(), asked, &*self.observer))
    }

    fn hold(&self, hold: HoldId) -> Read<'_, Option<Hold>> {
        ready(Ok(self.state().inventory.hold(hold).cloned()))
    }

    fn booking(&self, booking: BookingId) -> Read<'_, Option<Booking>> {
        ready(Ok(self.state().inventory.booking(booking).cloned()))
    }

    /// All of them at once.
    fn holds_of(&self, holder: Holder, _: Page<HoldId>) -> Read<'_, Vec<Hold>> {
        let state = self.state();
        let holds = state.inventory.holds();
        let own = holds.filter(|hold| hold.holder == holder && !hold.state.is_terminal());
        let mut own: Vec<Hold> = own.cloned().collect();
        own.reverse();
        ready(Ok(own))
    }

    fn take_effects(&self, _: Span, limit: usize) -> Read<'_, Vec<OpenEffect>> {
        let (state, mut seen) = (self.state(), BTreeSet::new());
        let oldest = |open: &&OpenEffect| seen.insert(open.effect.booking());
        let next = state.open.iter().filter(oldest).copied();
        ready(Ok(next.take(limit).collect()))
    }

    fn unsettled(&self, before: Timestamp, page: Page<MadeAt>) -> Read<'_, Vec<Booking>> {
        let state = self.state();
        let bookings = state.inventory.bookings();
        let open = bookings.filter(|booking| booking.created_at < before && is_unsettled(booking));
        ready(Ok(open.take(page.1).cloned().collect()))
    }

    fn history(&self, event: EventId) -> Read<'_, History> {
        let state = self.state();
        let no = state.inventory.find_event(&event).unwrap();
        let holds = state.inventory.holds().filter(|hold| hold.event == no);
        let commits = state.commits.iter().filter(|commit| commit.event == no);
        ready(Ok(History {
            units: state.inventory.event(no).unwrap().chart.units(),
            terms: None,
            holds: holds.map(HoldTerms::from).collect(),
            commits: commits.cloned().collect(),
        }))
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.clock.wall_ms())
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn close(&self) -> LedgerFuture<'_, ()> {
        ready(())
    }

    fn bookings_of(&self, _: Holder, _: Page<BookingId>) -> Read<'_, Vec<Booking>> {
        unreachable!("{NOT_HERE}")
    }

    fn holds_in(&self, _: EventNo, _: Page<HoldId>) -> Read<'_, Vec<Hold>> {
        unreachable!("{NOT_HERE}")
    }

    fn bookings_in(&self, _: EventNo, _: Page<BookingId>) -> Read<'_, Vec<Booking>> {
        unreachable!("{NOT_HERE}")
    }

    fn overdue_effects(&self, _: Timestamp) -> Read<'_, Vec<OpenEffect>> {
        unreachable!("{NOT_HERE}")
    }

    fn unit_history(&self, _: EventNo, _: UnitNo, _: usize) -> Read<'_, Vec<Commit>> {
        unreachable!("{NOT_HERE}")
    }

    fn drop_event(&self, _: EventNo, _: Span, _: Origin) -> Write<'_, Timestamp> {
        unreachable!("{NOT_HERE}")
    }

    fn clear_dropped(&self) -> Write<'_, bool> {
        unreachable!("{NOT_HERE}")
    }

    fn keys(&self) -> Read<'_, Vec<ApiKey>> {
        unreachable!("{NOT_HERE}")
    }

    fn add_key(&self, _: ApiKey) -> Write<'_, ()> {
        unreachable!("{NOT_HERE}")
    }

    fn revoke_key(&self, _: KeyId, _: Timestamp) -> Write<'_, bool> {
        unreachable!("{NOT_HERE}")
    }

    fn webhooks(&self) -> &dyn Webhooks {
        unreachable!("{NOT_HERE}")
    }

    fn master_keys(&self) -> Vec<MasterKey> {
        unreachable!("{NOT_HERE}")
    }
}

const NOT_HERE: &str = "no differential run compares it";

/// Whether its payment is not at its end, or its money must go back.
fn is_unsettled(booking: &Booking) -> bool {
    let is_open = |payment: &Payment| {
        payment.state <= PaymentState::Authorised || payment.state == PaymentState::Declined
    };
    let payment = booking.payment.as_deref();
    booking.state == BookingState::NeedsRefund || payment.is_some_and(is_open)
}
