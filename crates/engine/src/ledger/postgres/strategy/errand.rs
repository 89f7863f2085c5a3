//! One command by itself: decide on what is remembered, store it in one statement, and read the
//! memory anew. What every strategy but `queue` is made of.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use soldonce_core::{Command, Hold, Rejection, UnitNo, Wish};

use crate::ledger::postgres::batch::{Account, Batch, Seen};
use crate::ledger::postgres::booth::Booth;
use crate::ledger::postgres::database::Lane;
use crate::ledger::postgres::decide::{Decision, all_named, decide, fresh};
use crate::ledger::postgres::desk::Desk;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::{BELIEVED_TRIES_MAX, TRIES_MAX};
use crate::ledger::postgres::replica::{Named, Replica};
use crate::ledger::postgres::settle;
use crate::ledger::postgres::tables::Id;
use crate::ledger::postgres::write::{Dispatch, Guard, Outcome, Statement};
use crate::ledger::{Done, Transaction};

/// A command on its way.
pub(super) struct Errand<'a> {
    pub(super) desk: &'a Desk,
    pub(super) booth: &'a Booth,
    pub(super) asked: &'a Transaction,
    /// How often others were first: then what is remembered will not do.
    behind: AtomicUsize,
    /// The open place of an area from which on it takes places. The same until others write first:
    /// what was locked or leased for it must be what it takes.
    place: AtomicU32,
    /// How often all of the memory had been read before the first decision.
    loads: OnceLock<u64>,
    /// Units that the last decision touched and the command does not name: those of a hold that is
    /// over, or beside the ones it takes.
    pub(super) more: Mutex<Vec<UnitNo>>,
}

/// What came of one attempt.
pub(super) enum Step {
    Done(Result<Done, Rejection>),
    /// Others wrote first, or were about to.
    Again,
}

/// Which memory is good enough to decide on.
pub(super) enum Reading<'a> {
    /// What there is.
    Remembered,
    /// One in which these units, which are locked, stand as they are.
    With(&'a [Seen]),
    /// One that was read after the command was asked.
    Fresh,
}

/// What is to be done for a command.
pub(super) enum Plan {
    /// To be stored.
    Store(Box<Decided>),
    /// Nothing: it is answered.
    Answer(Result<Done, Rejection>),
}

/// A decision and the statement that stores it.
pub(super) struct Decided {
    id: Id,
    statement: Statement,
    guard: Guard,
    batch: Batch,
    /// The units it rests on, in unit order.
    pub(super) touched: Vec<UnitNo>,
    /// The holds it leaves, for those who look at what was stored.
    holds: Vec<Hold>,
    /// What counts against the holders in it.
    accounts: Vec<Account>,
}

impl<'a> Errand<'a> {
    pub(super) fn new(desk: &'a Desk, booth: &'a Booth, asked: &'a Transaction) -> Self {
        Self {
            desk,
            booth,
            asked,
            behind: AtomicUsize::new(0),
            place: AtomicU32::new(0),
            loads: OnceLock::new(),
            more: Mutex::default(),
        }
    }

    /// Attempt after attempt until there is an answer.
    pub(super) async fn repeat<F>(&self, attempt: impl Fn() -> F) -> Result<Done, Rejection>
    where
        F: Future<Output = Result<Step, Failure>>,
    {
        for _ in 0..TRIES_MAX {
            match attempt().await {
                Ok(Step::Done(done)) => return done,
                Ok(Step::Again) => {
                    self.behind.fetch_add(1, Ordering::Relaxed);
                }
                Err(failure) => {
                    tracing::warn!(%failure, "a command could not be carried out");
                    return Err(failure.rejection());
                }
            }
        }
        Err(Rejection::Overloaded)
    }

    /// How often others were first.
    pub(super) fn times_behind(&self) -> usize {
        self.behind.load(Ordering::Relaxed)
    }

    /// Decides the command on a memory that is good enough. What is no effect is answered from one
    /// that was read after it was asked.
    ///
    /// # Errors
    /// [`Failure`], when the database cannot be read.
    pub(super) async fn plan(
        &self,
        reading: Reading<'_>,
        guard: Guard,
        token: i64,
    ) -> Result<Plan, Failure> {
        let (mut replica, since) = self.memory().await;
        if self.was_silent(&since) {
            return Err(Failure::Away("it has said nothing for a while".to_owned()));
        }
        let loads = *self.loads.get_or_init(|| replica.loads());
        if self.times_behind() >= BELIEVED_TRIES_MAX && replica.loads() == loads {
            // Whatever the cause is: what is stored is not what is remembered. Once for all who wait.
            replica.forget();
        }
        let named = all_named(std::iter::once(self.asked));
        let is_good = self.is_good(&replica, &reading, &named);
        let planned = async {
            let on_this = is_good?.then(|| self.decide(&mut replica, guard, token));
            // A refusal is told only from a memory that was read since.
            if let Some(store @ Plan::Store(_)) = on_this.transpose()? {
                return Ok(store);
            }
            match self.read(&mut replica, &named, &since).await? {
                Some(known) => Ok(Plan::Answer(known)),
                None => self.decide(&mut replica, guard, token),
            }
        };
        let planned = planned.await;
        replica.let_go(named.holds, named.bookings);
        planned
    }

    /// The answer without lock or lease, if there is one: what another decided may be seen by now.
    ///
    /// # Errors
    /// As [`Errand::plan`].
    pub(super) async fn look(&self) -> Result<Step, Failure> {
        match self.plan(Reading::Fresh, Guard::Versions, 0).await? {
            Plan::Answer(done) => Ok(Step::Done(done)),
            Plan::Store(_) => Ok(Step::Again),
        }
    }

    /// Whether a decision on this memory has a chance to be stored.
    fn is_good(
        &self,
        replica: &Replica,
        reading: &Reading<'_>,
        named: &Named,
    ) -> Result<bool, Failure> {
        let is_enough = match reading {
            Reading::Fresh => false,
            Reading::Remembered => true,
            Reading::With(seen) => replica.stands_at(seen)?,
        } && self.times_behind() == 0;
        // The best units can be told only from the whole hall as it is now.
        let is_choice = matches!(
            &self.asked.command,
            Command::Hold(new) if matches!(new.wish, Wish::Best { .. })
        );
        Ok(is_enough && !is_choice && !replica.is_cold() && replica.knows(named))
    }

    fn decide(&self, replica: &mut Replica, guard: Guard, token: i64) -> Result<Plan, Failure> {
        let now = self.desk.time.now();
        let place = self.place.load(Ordering::Relaxed);
        replica.inventory.begin_trial_from(place);
        let mut batch = Batch::default();
        let shown = self.booth.shown();
        let decision = decide(replica, now, self.asked, &mut batch, shown);
        if let Decision::Quiet(done) = decision {
            replica.inventory.keep();
            return Ok(Plan::Answer(done));
        }
        let dispatch = Dispatch {
            token,
            guard,
            ..self.desk.dispatch(replica, &batch, now)
        };
        let statement = Statement::new(replica, &dispatch);
        let (id, accounts) = (dispatch.id, dispatch.accounts);
        let left = dispatch.holds.iter();
        let left = left.filter_map(|hold| replica.inventory.hold(*hold).cloned());
        let holds = left.collect();
        let touched = batch.touched_units(replica);
        replica.inventory.roll_back();
        Ok(Plan::Store(Box::new(Decided {
            id,
            statement: statement?,
            guard,
            batch,
            touched,
            holds,
            accounts,
        })))
    }

    /// Stores what was planned, in the transaction that is open on this connection if there is one.
    ///
    /// # Errors
    /// [`Failure`]; after `Unknown` it may have been stored.
    pub(super) async fn store(
        &self,
        mut lane: Lane,
        decided: Box<Decided>,
    ) -> Result<Step, Failure> {
        let begun = self.desk.clock.boot();
        let learn = |wall| self.desk.time.learn(wall);
        let sent = decided.statement.send(&mut lane, learn).await;
        // The turn is over; others have waited for it.
        drop(lane);
        let outcome = match sent {
            Err(Failure::Unknown(why)) => {
                tracing::warn!(why, "a command got no answer");
                let batch = (decided.id, self.desk.server);
                let settled = settle::settle(&self.desk.database, &self.desk.clock, batch);
                settled.await?.map_or(Outcome::Stale, Outcome::Stored)
            }
            Err(failure) if failure.is_contention() || failure.is_key_taken() => {
                if failure.is_holder_known() {
                    let mut replica = self.booth.replica.lock().await;
                    replica.holders.exist(&decided.accounts);
                }
                Outcome::Stale
            }
            Err(failure) if failure.is_overtaken() => {
                if let Some(done) = self.overtaken(&decided, &failure).await? {
                    return Ok(Step::Done(done));
                }
                Outcome::Stale
            }
            sent => sent?,
        };
        let Outcome::Stored(written) = outcome else {
            // What is decided after a loss is decided on what was just read: it lost a race.
            if self.times_behind() > 0 {
                self.place.store(self.desk.place(), Ordering::Relaxed);
            }
            return Ok(Step::Again);
        };
        self.desk.time.reached(written.at);
        let applied = decided.batch.applied.iter();
        let commits = applied.flat_map(|applied| applied.commits.iter().cloned());
        self.desk.recent.add(decided.id, written.at, commits);
        let took = self.desk.clock.boot().since(begun);
        self.desk.observer.batch(1, took);
        Ok(Step::Done(self.take_over(decided).await))
    }

    /// What to do about guards that refused: where versions were compared the memory is wrong. Gives the
    /// answer once the memory was read anew, and they refuse all the same.
    async fn overtaken(
        &self,
        decided: &Decided,
        failure: &Failure,
    ) -> Result<Option<Result<Done, Rejection>>, Failure> {
        if decided.guard == Guard::Versions {
            let mut replica = self.booth.replica.lock().await;
            self.desk.disbelieve(&mut replica, failure);
        }
        if self.times_behind() <= BELIEVED_TRIES_MAX {
            return Ok(None);
        }
        let mut lane = self.desk.database.lane().await?;
        let why = self
            .desk
            .sold_already(&mut lane, self.booth, &decided.batch);
        Ok(Some(Err(why.await?)))
    }

    /// Brings what was stored into memory and tells those who look.
    async fn take_over(&self, decided: Box<Decided>) -> Result<Done, Rejection> {
        let (mut replica, since) = self.memory().await;
        let replica = &mut *replica;
        if self.was_silent(&since) {
            replica.forget();
        } else if !self.was_read(&since) {
            let read = self.listen(Box::pin(async {
                let mut lane = self.desk.database.lane().await?;
                let nothing = Named::default();
                let refresh = self.desk.refresh(&mut lane, self.booth, replica, &nothing);
                refresh.await
            }));
            if let Err(failure) = read.await {
                tracing::warn!(%failure, "what was stored could not be read back");
                replica.forget();
            }
        }
        // A hold that is over by now is not in memory; it is shown as it was left.
        let is_gone = |hold: &Hold| replica.inventory.hold(hold.id).is_none();
        let gone: Vec<Hold> = decided.holds.into_iter().filter(is_gone).collect();
        let ids: Vec<_> = gone.iter().map(|hold| hold.id).collect();
        for hold in gone {
            replica.inventory.restore_hold(hold);
        }
        let observer = &self.desk.observer;
        observer.stored(&replica.inventory, &decided.batch.applied);
        for hold in ids {
            replica.inventory.drop_hold(hold);
        }
        self.desk.note_holds(replica, &decided.batch.holds());
        self.booth.note_end(&replica.inventory);
        let answer = decided.batch.applied.into_iter().next();
        answer.map_or(Err(Rejection::OutcomeUnknown), |done| {
            Ok(fresh(done.answer))
        })
    }
}
