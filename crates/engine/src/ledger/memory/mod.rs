//! The ledger of tests and simulations: `core` itself, with nothing durable. Passes the same
//! conformance suite as every other.

mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use secrecy::SecretBox;
use soldonce_clock::{Clock, Entropy};
use soldonce_core::{
    Answer, Applied, Booking, BookingId, Commit, EventId, EventNo, EventState, History, Hold,
    HoldId, HoldTerms, Holder, Inventory, Rejection, Seq, Span, Timestamp, UnitNo,
};

use self::webhooks::Post;
use super::clock::LedgerClock;
use super::{
    Decider, Decision, Done, Ledger, LedgerFuture, MasterKey, Observer, OpenEffect, ReadError,
    Transaction, Webhooks,
};
use crate::keys::{ApiKey, KeyId, is_last_admin};
use crate::webhook::Before;

/// Keeps everything in memory, for ever.
pub struct MemoryLedger {
    state: Mutex<State>,
    clock: LedgerClock,
    observer: Arc<dyn Observer>,
    master: MasterKey,
}

#[derive(Default)]
struct State {
    decider: Decider,
    commits: BTreeMap<EventNo, Vec<Commit>>,
    open: Vec<OpenEffect>,
    post: Post,
    keys: Vec<ApiKey>,
    closed: bool,
    /// Events whose terms changed.
    changed: BTreeSet<EventNo>,
}

impl MemoryLedger {
    /// An empty ledger.
    pub fn new(clock: Arc<dyn Clock>, entropy: &dyn Entropy, observer: Arc<dyn Observer>) -> Self {
        observer.opened(&Inventory::new());
        let mut secret = [0; 32];
        entropy.fill(&mut secret);
        let master = MasterKey {
            version: 1,
            secret: Arc::new(SecretBox::new(Box::new(secret))),
        };
        Self {
            state: Mutex::default(),
            clock: LedgerClock::after(Timestamp::from_ms(0), clock),
            observer,
            master,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&self, transaction: Transaction) -> Result<Done, Rejection> {
        let now = self.now();
        let mut state = self.state();
        if state.closed {
            return Err(Rejection::ShuttingDown);
        }
        let before = Before::of(&state.decider.inventory, &transaction.command);
        match state.decider.decide(now, transaction) {
            Decision::Refused(rejection) => Err(rejection),
            Decision::Replay(reply) => Ok(Done::Replayed(reply)),
            Decision::Applied(applied, _) => {
                state.keep(&applied, now);
                if !state.post.endpoints.is_empty() {
                    let messages = before.messages(&state.decider.inventory, &applied, now);
                    state.post.add(&messages, now);
                }
                let applied = *applied;
                self.observer
                    .committed(&state.decider.inventory, std::slice::from_ref(&applied));
                let seq = applied.commits.first().map(|commit| commit.seq);
                Ok(Done::Fresh {
                    answer: applied.answer,
                    seq,
                })
            }
        }
    }
}

impl State {
    fn keep(&mut self, applied: &Applied, at: Timestamp) {
        self.open
            .retain(|open| !applied.settled.contains(&open.effect));
        let open = applied.effects.iter().map(|effect| OpenEffect {
            effect: *effect,
            at,
        });
        self.open.extend(open);
        if let Answer::Event(event) = &applied.answer
            && event.state == EventState::Open
        {
            self.changed.insert(event.no);
        }
        for commit in &applied.commits {
            self.commits
                .entry(commit.event)
                .or_default()
                .push(commit.clone());
        }
    }

    /// The oldest of each booking.
    fn next_effects(&self, before: Timestamp) -> impl Iterator<Item = OpenEffect> {
        let mut seen = BTreeSet::new();
        let first = move |open: &&OpenEffect| seen.insert(open.effect.booking());
        let next = self.open.iter().filter(first).copied();
        next.filter(move |open| open.at < before)
    }

    fn holds(&self) -> impl DoubleEndedIterator<Item = &Hold> {
        self.decider
            .inventory
            .holds()
            .collect::<Vec<_>>()
            .into_iter()
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> LedgerFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Ledger for MemoryLedger {
    fn transact(&self, transaction: Transaction) -> LedgerFuture<'_, Result<Done, Rejection>> {
        ready(self.decide(transaction))
    }

    fn hold(&self, hold: HoldId) -> LedgerFuture<'_, Result<Option<Hold>, ReadError>> {
        ready(Ok(self.state().decider.inventory.hold(hold).cloned()))
    }

    fn booking(&self, booking: BookingId) -> LedgerFuture<'_, Result<Option<Booking>, ReadError>> {
        ready(Ok(self.state().decider.inventory.booking(booking).cloned()))
    }

    fn holds_of(
        &self,
        holder: Holder,
        before: Option<HoldId>,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Hold>, ReadError>> {
        let state = self.state();
        let own = |hold: &&Hold| {
            let older = before.is_none_or(|before| hold.id < before);
            older && hold.holder == holder && !hold.state.is_terminal()
        };
        let found = state
            .holds()
            .rev()
            .filter(own)
            .take(limit)
            .cloned()
            .collect();
        ready(Ok(found))
    }

    fn bookings_of(
        &self,
        holder: Holder,
        before: Option<BookingId>,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Booking>, ReadError>> {
        let state = self.state();
        let own = state
            .decider
            .inventory
            .bookings()
            .filter(|booking| booking.holder == holder)
            .filter(|booking| before.is_none_or(|before| booking.id < before));
        let mut found: Vec<Booking> = own.cloned().collect();
        found.reverse();
        found.truncate(limit);
        ready(Ok(found))
    }

    fn holds_in(
        &self,
        event: EventNo,
        after: Option<HoldId>,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Hold>, ReadError>> {
        let state = self.state();
        let holds = state.holds().filter(|hold| hold.event == event);
        let later = holds.filter(|hold| after.is_none_or(|after| hold.id > after));
        ready(Ok(later.take(limit).cloned().collect()))
    }

    fn bookings_in(
        &self,
        event: EventNo,
        after: Option<BookingId>,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Booking>, ReadError>> {
        let state = self.state();
        let bookings = state.decider.inventory.bookings();
        let bookings = bookings.filter(|booking| booking.event == event);
        let later = bookings.filter(|booking| after.is_none_or(|after| booking.id > after));
        ready(Ok(later.take(limit).cloned().collect()))
    }

    fn take_effects(
        &self,
        _keep: Span,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<OpenEffect>, ReadError>> {
        let all = Timestamp::from_ms(i64::MAX);
        ready(Ok(self.state().next_effects(all).take(limit).collect()))
    }

    fn overdue_effects(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<OpenEffect>, ReadError>> {
        ready(Ok(self.state().next_effects(before).take(limit).collect()))
    }

    fn unsettled(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Booking>, ReadError>> {
        let state = self.state();
        let bookings = state.decider.inventory.bookings();
        let found =
            bookings.filter(|booking| booking.created_at < before && booking.is_unsettled());
        ready(Ok(found.take(limit).cloned().collect()))
    }

    fn unit_history(
        &self,
        event: EventNo,
        unit: UnitNo,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Commit>, ReadError>> {
        let state = self.state();
        let commits = state
            .commits
            .get(&event)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let of_unit = commits.iter().flat_map(|commit| {
            let own = commit.transitions.iter().filter(|step| step.unit == unit);
            own.map(|step| Commit {
                transitions: vec![*step],
                ..commit.clone()
            })
        });
        ready(Ok(of_unit.take(limit).collect()))
    }

    fn commits_after(
        &self,
        event: EventNo,
        after: Seq,
        limit: usize,
    ) -> LedgerFuture<'_, Result<Vec<Commit>, ReadError>> {
        let state = self.state();
        let commits = state
            .commits
            .get(&event)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let later = commits.iter().filter(|commit| commit.seq > after);
        ready(Ok(later.take(limit).cloned().collect()))
    }

    fn history(&self, event: EventId) -> LedgerFuture<'_, Result<History, ReadError>> {
        let state = self.state();
        let inventory = &state.decider.inventory;
        let found = inventory
            .find_event(&event)
            .and_then(|no| inventory.event(no));
        ready(found.map_or_else(
            || Err(ReadError::Failed(format!("there is no event `{event}`"))),
            |event| {
                let of_event = inventory.holds().filter(|hold| hold.event == event.no);
                Ok(History {
                    units: event.chart.units(),
                    terms: (!state.changed.contains(&event.no)).then(|| event.policy.clone()),
                    holds: of_event.map(HoldTerms::from).collect(),
                    commits: state.commits.get(&event.no).cloned().unwrap_or_default(),
                })
            },
        ))
    }

    fn keys(&self) -> LedgerFuture<'_, Result<Vec<ApiKey>, ReadError>> {
        ready(Ok(self.state().keys.clone()))
    }

    fn add_key(&self, key: ApiKey) -> LedgerFuture<'_, Result<(), Rejection>> {
        self.state().keys.push(key);
        ready(Ok(()))
    }

    fn revoke_key(&self, key: KeyId, at: Timestamp) -> LedgerFuture<'_, Result<bool, Rejection>> {
        let mut state = self.state();
        if is_last_admin(&state.keys, key) {
            return ready(Ok(false));
        }
        let alive = |known: &&mut ApiKey| known.id == key && known.revoked_at.is_none();
        let found = state.keys.iter_mut().find(alive);
        let revoked = found.map(|known| known.revoked_at = Some(at));
        ready(Ok(revoked.is_some()))
    }

    fn webhooks(&self) -> &dyn Webhooks {
        self
    }

    fn master_keys(&self) -> Vec<MasterKey> {
        vec![self.master.clone()]
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn is_writable(&self) -> bool {
        !self.state().closed
    }

    fn close(&self) -> LedgerFuture<'_, ()> {
        self.state().closed = true;
        ready(())
    }
}
