//! Strategies `lease` and `redlock`: a lease over the units of a command in one round trip, a write
//! under its fencing token, and the release, whatever came of it. The lease keeps two commands apart;
//! that it does is not believed: the write names versions, and a token below the one a unit was last
//! written under is refused. So a lease server that is away, or has lost its memory, costs time and
//! nothing else.

use std::sync::{Arc, Mutex, PoisonError};

use soldonce_clock::{BootTime, Clock};
use soldonce_core::UnitNo;
use soldonce_lease::{AcquireError, FencingToken, Lease, Locks, Renew, Request, Wait};
use tokio_postgres::types::Type;

use super::errand::{Errand, Plan, Reading, Step};
use crate::ledger::postgres::database::Value;
use crate::ledger::postgres::desk::Desk;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::{LEASE_AWAY, LEASE_NAMES_MAX, LEASE_TTL, LEASE_WAIT};
use crate::ledger::postgres::tables::{Columns, int};
use crate::ledger::postgres::write::Guard;

const LAST_TOKEN: &str = "-- last_token
SELECT max(token) FROM units WHERE event_no = $1 AND unit_no = ANY($2)";

/// The leases over the units of one event.
pub(super) struct Leases {
    locks: Locks,
    clock: Arc<dyn Clock>,
    /// Until when nobody is asked, because the last one got no answer.
    away_until: Mutex<BootTime>,
}

/// What became of the wish for a lease.
enum Leased {
    Mine(Lease),
    /// Others have the units; this would wait for them.
    Taken(Request),
    /// There is none to be had, or none is needed.
    Without,
}

impl Leases {
    pub(super) fn new(locks: Locks, desk: &Desk) -> Self {
        Self {
            locks,
            clock: Arc::clone(&desk.clock),
            away_until: Mutex::default(),
        }
    }

    /// One round trip.
    async fn ask(&self, errand: &Errand<'_>, units: &[UnitNo]) -> Leased {
        let is_away = self.clock.boot() < *self.away_until();
        if is_away || !(1..=LEASE_NAMES_MAX).contains(&units.len()) {
            return Leased::Without;
        }
        let begun = self.clock.boot();
        let asked = self.request(errand, units).try_acquire().await;
        self.count(errand, &asked, begun);
        match asked {
            Ok(lease) => Leased::Mine(lease),
            Err(AcquireError::Refused(_)) => Leased::Taken(self.request(errand, units)),
            Err(error) => self.without(&error),
        }
    }

    /// Waits for the others.
    async fn wait(&self, errand: &Errand<'_>, request: Request) -> Leased {
        let begun = self.clock.boot();
        let asked = request.acquire(Wait::UpTo(LEASE_WAIT)).await;
        self.count(errand, &asked, begun);
        match asked {
            Ok(lease) => Leased::Mine(lease),
            Err(error) => self.without(&error),
        }
    }

    fn count(&self, errand: &Errand<'_>, asked: &Result<Lease, AcquireError>, begun: BootTime) {
        let outcome = match asked {
            Ok(_) => "acquired",
            Err(AcquireError::Refused(_)) => "refused",
            Err(AcquireError::TimedOut { .. } | AcquireError::QueueFull) => "timed_out",
            Err(_) => "away",
        };
        let took = self.clock.boot().since(begun);
        errand.desk.observer.leased(outcome, took);
    }

    /// Goes on without one, and for a while asks for none: the ledger needs no lease to be right.
    fn without(&self, error: &AcquireError) -> Leased {
        if !matches!(
            error,
            AcquireError::TimedOut { .. } | AcquireError::QueueFull
        ) {
            tracing::warn!(%error, "leases are away");
            *self.away_until() = self.clock.boot().plus(LEASE_AWAY);
        }
        Leased::Without
    }

    fn request(&self, errand: &Errand<'_>, units: &[UnitNo]) -> Request {
        let group = self.locks.group(format!("event-{}", errand.booth.no.0));
        let names = units.iter().map(|unit| unit.0.to_string());
        // It lives for one write: whoever is not done by then is overtaken, and refused.
        group.names(names).ttl(LEASE_TTL).renew(Renew::Manual)
    }

    fn away_until(&self) -> std::sync::MutexGuard<'_, BootTime> {
        self.away_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// # Errors
/// [`Failure`], when the database cannot be asked.
pub(super) async fn attempt(errand: &Errand<'_>, leases: &Leases) -> Result<Step, Failure> {
    let units = errand.units().await;
    let mut got = leases.ask(errand, &units).await;
    if let Leased::Taken(request) = got {
        if let done @ Step::Done(_) = errand.look().await? {
            return Ok(done);
        }
        got = leases.wait(errand, request).await;
    }
    let Leased::Mine(lease) = got else {
        return write(errand, &[], 0).await;
    };
    let token = lease.token();
    let number = token.map_or(0, FencingToken::number);
    let step = write(errand, &units, i64::try_from(number).unwrap_or(0)).await;
    let told = match (&step, token) {
        (Ok(Step::Again), Some(token)) => overtaken(errand, &units, token, &lease).await,
        (Ok(Step::Again | Step::Done(_)) | Err(_), _) => Ok(()),
    };
    // Before the answer, whatever it is, so that whoever hears of it finds the units free of the lease.
    if let Err(error) = lease.release().await {
        tracing::debug!(%error, "a lease was not given back and ends by itself");
    }
    told.and(step)
}

async fn write(errand: &Errand<'_>, units: &[UnitNo], token: i64) -> Result<Step, Failure> {
    let lane = errand.desk.database.command_lane().await?;
    match errand
        .plan(Reading::Remembered, Guard::Versions, token)
        .await?
    {
        Plan::Answer(done) => Ok(Step::Done(done)),
        Plan::Store(decided) if errand.is_within(&decided, units) => {
            errand.store(lane, decided).await
        }
        Plan::Store(_) => Ok(Step::Again),
    }
}

/// Tells the lease's own servers of a higher token, if that is why the write was refused (lease.md
/// 4.5): the next one is above it.
async fn overtaken(
    errand: &Errand<'_>,
    units: &[UnitNo],
    mine: FencingToken,
    lease: &Lease,
) -> Result<(), Failure> {
    let event = int(errand.booth.no.0)?;
    let units = units.iter().map(|unit| int(unit.0));
    let units = units.collect::<Result<Vec<i32>, _>>()?;
    let values: [Value<'_>; 2] = [(&event, Type::INT4), (&units, Type::INT4_ARRAY)];
    let rows = errand.desk.database.rows(LAST_TOKEN, &values).await;
    let rows = rows.map_err(Failure::of_read)?;
    let last = rows.first().map(|row| Columns::new(row, "units").get(0));
    let last: Option<i64> = last.transpose()?.flatten();
    let last = last.and_then(|last| FencingToken::new(u64::try_from(last).ok()?, mine.tag()));
    if let Some(last) = last.filter(|last| *last > mine) {
        lease.overtaken(last);
    }
    Ok(())
}
