//! The feed's numbers. On PostgreSQL a commit gets its number after it was stored, from the server
//! that has locked the sequencer's row; decision 0171 says why. All that follows from that is in
//! this folder: numbering (`number`), publishing what any server numbered (`follow`), a cache of
//! own batches, which need not be read back for either (`own_batches`), and how late the numbers
//! are (`lag`).
//!
//! A commit of server A reaches a reader at server B so: any server numbers it within
//! `NUMBER_EVERY_MS`, once every transaction that began before is over; B reads it within
//! `FOLLOW_EVERY_MS` and passes it to `live/`; the next frame of the feed carries it.

mod follow;
mod lag;
mod number;
pub(super) mod own_batches;

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(super) use self::follow::FeedPosition;
use self::follow::Follower;
pub(super) use self::number::follow_move;
use self::number::number;
use super::context::Context;
use super::limits::{FOLLOW_EVERY_MS, NUMBER_EVERY_MS, RENEWED_EVERY_MS};
use crate::catch_panic::catch_panic;

/// The condition of a batch `b` that has no number and is to get one.
macro_rules! unnumbered {
    () => {
        "b.xid >= (SELECT s.xid::text::xid8 FROM sequencer s WHERE s.one = 1) AND b.event_no >= 0
  AND b.commands > 0 AND NOT EXISTS (SELECT FROM feed f WHERE f.batch = b.id)"
    };
}

/// The batches `b` that have no number and are to get one, of those that `since!` looks through.
macro_rules! waiting {
    () => {
        concat!(
            since!("xid >= (SELECT s.xid::text::xid8 FROM sequencer s WHERE s.one = 1)"),
            "
WHERE ",
            unnumbered!()
        )
    };
}

pub(super) use unnumbered;
pub(super) use waiting;

/// Starts the tasks of the feed. `known` is where the ledger ended before the first event was read.
pub(super) fn start(
    tasks: &mut JoinSet<()>,
    context: &Arc<Context>,
    shutdown: &CancellationToken,
    known: FeedPosition,
) {
    tasks.spawn(keep_numbering(Arc::clone(context), shutdown.clone()));
    tasks.spawn(lag::watch(Arc::clone(context), shutdown.clone()));
    tasks.spawn(show(Arc::clone(context), shutdown.clone(), known));
}

async fn keep_numbering(context: Arc<Context>, shutdown: CancellationToken) {
    while context.pause(&shutdown, NUMBER_EVERY_MS).await {
        if let Some(Err(failure)) = catch_panic(number(&context)).await {
            tracing::debug!(%failure, "commits were not numbered");
        }
    }
}

/// Publishes what was numbered after `known`, again and again until `shutdown`.
async fn show(context: Arc<Context>, shutdown: CancellationToken, known: FeedPosition) {
    let mut follower = Follower::new(known);
    let mut next_renewed = context.clock.boot();
    while context.pause(&shutdown, FOLLOW_EVERY_MS).await {
        if next_renewed <= context.clock.boot() {
            if let Some(Err(failure)) = catch_panic(follower.find_renewed(&context)).await {
                tracing::debug!(%failure, "changes of events were not looked for");
            }
            if let Some(Err(failure)) = catch_panic(context.find_dropped()).await {
                tracing::debug!(%failure, "dropped events were not looked for");
            }
            next_renewed = context.clock.boot().plus_ms(RENEWED_EVERY_MS);
        }
        if let Some(Err(failure)) = catch_panic(follower.step(&context)).await {
            tracing::debug!(%failure, "the feed was not known");
        }
    }
}
