//! How far the feed is behind the commits, and what holds it up: a transaction left open by the same database
//! user, behind which no commit can be numbered.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{unnumbered, waiting};
use crate::catch_panic::catch_panic;
use crate::ledger::postgres::context::Context;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::horizon::since;
use crate::ledger::postgres::limits::{FEED_LATE_MS, FEED_LOOK_MS};
use crate::ledger::rows::reader::Reader;
use crate::locks::lock;
use crate::trouble::Trouble;

/// The age of the oldest batch without a number, and the process of the oldest writing transaction
/// of this user or application.
const LAG: &str = concat!(
    "-- feed_lag
SELECT greatest(0, (SELECT ledger_clock() - min(b.at) FROM ",
    waiting!(),
    "))::bigint,
       (SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL
          AND (usename = current_user OR application_name = current_setting('application_name'))
        ORDER BY xact_start NULLS FIRST LIMIT 1)"
);

/// How far the feed is behind.
#[derive(Default)]
struct Lag {
    behind: Duration,
    /// The process id of the database session whose writing transaction is the oldest.
    process: Option<i32>,
}

async fn look(context: &Context) -> Result<Lag, Failure> {
    let read = |row: &mut Reader<'_>| {
        let (behind, process): (Option<i64>, Option<i64>) = (row.get()?, row.get()?);
        let behind = behind.and_then(|ms| ms.try_into().ok()).unwrap_or(0);
        Ok(Lag {
            behind: Duration::from_millis(behind),
            process: process.and_then(|process| process.try_into().ok()),
        })
    };
    let numbered = lock(&context.numbered).clone();
    let since = numbered.parts();
    let mut connection = context.database.connection().await?;
    let lag = connection.first((LAG, "batches"), &since, read).await?;
    Ok(lag.unwrap_or_default())
}

/// Reads the lag again and again, reports it as a metric, and logs why the feed is stopped. While the
/// database does not tell it, it grows with the time.
pub(super) async fn watch(context: Arc<Context>, shutdown: CancellationToken) {
    let mut trouble = Trouble::default();
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
        context.observer.feed_lag(lag.behind, lag.process);
        if lag.behind < Duration::from_millis(FEED_LATE_MS) {
            if trouble.ends() {
                tracing::info!("commits get their numbers again");
            }
        } else if trouble.lasts(context.clock.boot()) {
            let (behind_ms, process) = (lag.behind.as_millis(), lag.process.unwrap_or_default());
            tracing::warn!(
                behind_ms,
                process,
                "feed, maps and webhooks stand still: commits get no numbers while a transaction of a \
                 server is open; with servers of several roles, without pg_read_all_stats, they get them late. End it, or its process: SELECT pg_terminate_backend(process)"
            );
        }
    }
}
