//! How far the feed is behind the commits, and what holds it up: a transaction left open by the same database
//! user, behind which no commit can be numbered. One of another user or database holds no number up, but the
//! sequencer's place stays before it.

use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::BootTime;
use tokio_util::sync::CancellationToken;

use super::{unnumbered, waiting};
use crate::catch_panic::catch_panic;
use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::context::Context;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::horizon::since;
use crate::ledger::postgres::limits::{FEED_LATE_MS, FEED_LOOK_MS, LEFT_OPEN_MAX};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::reader::Reader;
use crate::locks::lock;
use crate::trouble::Trouble;

/// The age of the oldest batch without a number, and the process of the oldest writing transaction
/// of this user or application; then that of the whole cluster, if very many have begun since. Every user may see
/// `backend_xid`.
const LAG: &str = concat!(
    "-- feed_lag
SELECT greatest(0, (SELECT ledger_clock() - min(b.at) FROM ",
    waiting!(),
    "))::bigint,
       (SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL
          AND (usename = current_user OR application_name = current_setting('application_name'))
        ORDER BY xact_start NULLS FIRST LIMIT 1),
       (SELECT pid FROM pg_stat_activity WHERE age(backend_xid) > $3 ORDER BY age(backend_xid) DESC LIMIT 1)"
);

#[derive(Default)]
struct Lag {
    behind: Duration,
    /// The process id of the database session whose writing transaction is the oldest.
    process: Option<i32>,
    /// That of any user and database, if it is left open.
    left_open: Option<i32>,
}

async fn look(context: &Context) -> Result<Lag, Failure> {
    let read = |row: &mut Reader<'_>| {
        let behind = row.get::<Option<i64>>()?;
        let behind = behind.and_then(|ms| ms.try_into().ok()).unwrap_or(0);
        let mut process = || -> Result<Option<i32>, Damaged> {
            let process = row.get::<Option<i64>>()?;
            Ok(process.and_then(|process| process.try_into().ok()))
        };
        Ok(Lag {
            behind: Duration::from_millis(behind),
            process: process()?,
            left_open: process()?,
        })
    };
    let numbered = lock(&context.numbered).horizon.clone();
    let [first, last] = numbered.parts();
    let values = [first, last, bind(&LEFT_OPEN_MAX)];
    let mut connection = context.database.connection().await?;
    let lag = connection.first((LAG, "batches"), &values, read).await?;
    Ok(lag.unwrap_or_default())
}

/// Reads the lag again and again, reports it as a metric, and logs why the feed is stopped. While the
/// database does not tell it, it grows with the time.
pub(super) async fn watch(context: Arc<Context>, shutdown: CancellationToken) {
    let (mut late, mut left_open) = (Trouble::default(), Trouble::default());
    // Until then the feed had every commit.
    let mut complete = context.clock.boot();
    while context.pause(&shutdown, FEED_LOOK_MS).await {
        let begun = context.clock.boot();
        let Some(Ok(lag)) = catch_panic(look(&context)).await else {
            let behind = context.clock.boot().since(complete);
            context.observer.feed_lag(behind, None);
            continue;
        };
        complete = begun.minus(lag.behind);
        context
            .observer
            .feed_lag(lag.behind, lag.process.or(lag.left_open));
        let now = context.clock.boot();
        log_late(&lag, &mut late, now);
        log_left_open(&lag, &mut left_open, now);
    }
}

fn log_late(lag: &Lag, trouble: &mut Trouble, now: BootTime) {
    if lag.behind < Duration::from_millis(FEED_LATE_MS) {
        if trouble.ends() {
            tracing::info!("commits get their numbers again");
        }
    } else if trouble.lasts(now) {
        let (behind_ms, process) = (lag.behind.as_millis(), lag.process.unwrap_or_default());
        tracing::warn!(
            behind_ms,
            process,
            "feed, maps and webhooks stand still: commits get no numbers while a transaction of a \
             server is open; with servers of several roles, without pg_read_all_stats, they get them late. End it, or its process: SELECT pg_terminate_backend(process)"
        );
    }
}

/// Logs a transaction of any database of the cluster that is left open. Commands and feed go on.
fn log_left_open(lag: &Lag, trouble: &mut Trouble, now: BootTime) {
    match lag.left_open {
        Some(process) if trouble.lasts(now) => tracing::warn!(
            process,
            "a transaction that writes is left open in the database's cluster: servers that start look through all \
             commits since. End it, or its process: SELECT pg_terminate_backend(process)"
        ),
        Some(_) => {}
        None => {
            trouble.ends();
        }
    }
}
