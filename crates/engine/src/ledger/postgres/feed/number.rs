//! Numbers commits. Those of one event may finish out of order, so they are numbered after
//! they are stored, densely and for good, by whichever server has the sequencer's row locked. A
//! server that dies with it releases it with its connection.
//!
//! The order is that of the ledger's clock, then of `place`, which is drawn with all rows locked: a
//! batch that rests on another comes behind it. Times never fall along the feed: a batch waits until
//! every transaction that could still be given an earlier time is over.

use std::collections::{BTreeMap, BTreeSet};

use soldonce_core::{Commit, EventNo, Seq};

use super::{unnumbered, waiting};
use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::context::Context;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::horizon::{Horizon, LastTurn, horizon, since};
use crate::ledger::postgres::limits::FEED_BATCHES_MAX;
use crate::ledger::postgres::tables::{Columns, Id, int};
use crate::ledger::rows::chain::{self, AuditRow};
use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::{Damaged, to_i64};
use crate::locks::lock;

/// Whether a batch is of a transaction that this cluster has not begun yet.
macro_rules! has_moved {
    () => {
        "greatest(xid, (SELECT b.xid::text::bigint FROM batches b ORDER BY b.xid DESC LIMIT 1))
                   > pg_snapshot_xmax(pg_current_snapshot())::text::bigint + shift AS has_moved
FROM sequencer WHERE one = 1"
    };
}

/// Tells, too, whether a batch has this number.
const TAKE_TURN: &str = concat!(
    "-- take_turn\nSELECT n, EXISTS (SELECT FROM feed f WHERE f.n = $1 AND f.batch = $2), ",
    has_moved!(),
    " FOR UPDATE SKIP LOCKED"
);

const HAS_MOVED: &str = concat!("-- has_moved\nSELECT ", has_moved!());

/// Transactions that write now have the old shift; later ones wait, and have the new one.
const STOP_WRITERS: &str = "-- stop_writers
LOCK TABLE batches IN SHARE ROW EXCLUSIVE MODE";

/// Tests the condition again: the first look may be older than the row it found.
const RAISE_SHIFT: &str = "-- raise_shift
UPDATE sequencer SET shift = last.xid + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint
FROM (SELECT greatest(s.xid, (SELECT b.xid::text::bigint FROM batches b ORDER BY b.xid DESC LIMIT 1))
          AS xid FROM sequencer s WHERE s.one = 1) AS last
WHERE one = 1 AND last.xid > pg_snapshot_xmax(pg_current_snapshot())::text::bigint + shift
RETURNING shift";

/// No batch that is stored from now on has an earlier time. When the transaction of a server with another role began
/// cannot be seen without `pg_read_all_stats`: twice the time that its answer is waited for is taken.
const QUIET_UNTIL: &str = "-- quiet_until
SELECT ledger_clock(least(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, (
    SELECT floor(extract(epoch FROM min(coalesce(xact_start, clock_timestamp() - interval '10 s'))) * 1000)::bigint
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL
      AND (usename = current_user OR application_name = current_setting('application_name')))))";

const UNNUMBERED: &str = concat!(
    "-- unnumbered
SELECT b.id, b.event_no FROM ",
    waiting!(),
    "
  AND b.at < $3 ORDER BY b.at, b.place LIMIT $4"
);

const HEADS: &str = "-- heads
SELECT e.event_no, e.id, e.created_at, e.fingerprint, coalesce(h.seq, 0), h.hash
FROM events e LEFT JOIN feed_heads h USING (event_no) WHERE e.event_no = ANY ($1)";

const NUMBER: &str = "-- number
INSERT INTO feed (n, event_no, first_seq, commands, batch, hash)
SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::integer[], $5::bytea[],
                     $6::bytea[])";

const MOVE_HEADS: &str = "-- move_heads
INSERT INTO feed_heads AS head (event_no, seq, hash)
SELECT * FROM unnest($1::integer[], $2::bigint[], $3::bytea[])
ON CONFLICT (event_no) DO UPDATE SET seq = excluded.seq, hash = excluded.hash
WHERE head.seq < excluded.seq";

/// Stores a transaction below which everything is numbered, or never will be. Returns the first one that is not, and
/// the horizon.
const END_TURN: &str = concat!(
    "-- end_turn
UPDATE sequencer SET n = $3, xid = least(
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint + shift, waiting.first)
FROM (SELECT min(b.xid::text::bigint) AS first FROM ",
    waiting!(),
    ") AS waiting
WHERE one = 1
RETURNING waiting.first, ",
    horizon!()
);

/// Where the audit of one event ends.
#[derive(Clone, Copy)]
struct Head {
    seq: Seq,
    hash: [u8; 32],
}

/// Numbers what is stored and can be numbered. Does nothing while another server does it.
///
/// # Errors
/// [`Failure`]; then nothing was numbered, or perhaps all of it if the outcome of the commit is
/// unknown.
pub(super) async fn number(context: &Context) -> Result<(), Failure> {
    let mut connection = context.database.connection().await?;
    connection.begin_write().await?;
    let before = lock(&context.numbered).clone();
    let done = number_oldest(context, &mut connection, before).await;
    match done {
        Ok(Turn::Nothing) | Err(_) => {
            connection.roll_back().await;
            done.map(drop)
        }
        Ok(Turn::Moved) => connection.commit().await,
        Ok(Turn::Numbered(numbered)) => {
            connection.commit().await?;
            *lock(&context.numbered) = numbered;
            Ok(())
        }
    }
}

/// What was done in a turn.
enum Turn {
    Nothing,
    /// The shift was raised.
    Moved,
    Numbered(LastTurn),
}

/// Numbers in the transaction that is open, of the batches that were not numbered `before`.
async fn number_oldest(
    context: &Context,
    connection: &mut Connection,
    before: LastTurn,
) -> Result<Turn, Failure> {
    let mut newest = before.last;
    let read = |row: &mut Reader<'_>| Ok((row.get::<i64>()?, row.get()?, row.get()?));
    let values = [bind(&before.last.0), bind(&before.last.1)];
    let turn = connection.first((TAKE_TURN, "sequencer"), &values, read);
    let Some((last, is_stored, has_moved)) = turn.await? else {
        return Ok(Turn::Nothing);
    };
    if has_moved {
        return raise_shift(connection).await;
    }
    // An asynchronous standby that was promoted may lack the last turns, and gives transactions their numbers again.
    let numbered = if is_stored {
        before.horizon
    } else {
        // The lag is read from there, also while nothing can be numbered.
        *lock(&context.numbered) = LastTurn::default();
        Horizon::default()
    };
    let batches = unnumbered(context, connection, &numbered).await?;
    if batches.is_empty() {
        return Ok(Turn::Nothing);
    }
    let mut heads = heads(connection, &batches).await?;
    let mut feed = Numbers::default();
    let (own_batches, events) = (&context.own_batches, batches.iter().copied().collect());
    let commits = own_batches.commits_of(connection, &events).await?;
    for (n, (id, event)) in (last.saturating_add(1)..).zip(&batches) {
        let unknown = || Damaged::new("events", format!("event {} is not known", event.0));
        let head = heads.get_mut(event).ok_or_else(unknown)?;
        let commits = commits.get(id).map(|commits| commits.as_slice());
        feed.add(n, (*id, *event), head, commits.unwrap_or_default())?;
        newest = (n, *id);
    }
    feed.write(connection).await?;
    move_heads(connection, &heads).await?;
    end_turn(connection, &numbered, newest).await
}

/// Stores the last number, and how far all is numbered.
async fn end_turn(
    connection: &mut Connection,
    numbered: &Horizon,
    last: (i64, Id),
) -> Result<Turn, Failure> {
    let [from, until] = numbered.parts();
    let values = [from, until, bind(&last.0)];
    let rows = connection.rows(END_TURN, &values).await?;
    let missing = || Damaged::new("sequencer", "its row is missing");
    let columns = Columns::new(rows.first().ok_or_else(missing)?, "sequencer");
    let (waiting, next): (Option<i64>, i64) = (columns.get(0)?, columns.get(2)?);
    let next = waiting.map_or(next, |first| first.min(next));
    let horizon = Horizon::new(columns.get(1)?, next);
    Ok(Turn::Numbered(LastTurn { horizon, last }))
}

/// Calls [`raise_shift`] if the ledger has moved. A server does so before it takes commands: a
/// batch with the old shift would be of an earlier transaction than those numbered, and never get
/// its number.
///
/// # Errors
/// [`Failure`]; then no command may be taken.
pub(in super::super) async fn follow_move(connection: &mut Connection) -> Result<(), Failure> {
    if connection.one((HAS_MOVED, "sequencer"), &[]).await? != Some(true) {
        return Ok(());
    }
    connection.begin_write().await?;
    let raised = raise_shift(connection).await;
    connection.finish(raised).await.map(drop)
}

/// Raises the shift: this cluster's transaction numbers begin after those of the cluster before
/// (decision 0023). Does nothing if another server did so.
async fn raise_shift(connection: &mut Connection) -> Result<Turn, Failure> {
    connection.run(STOP_WRITERS).await?;
    let Some::<i64>(shift) = connection.one((RAISE_SHIFT, "sequencer"), &[]).await? else {
        return Ok(Turn::Nothing);
    };
    tracing::warn!(shift, "the ledger was moved to another cluster");
    Ok(Turn::Moved)
}

/// A batch without a number, and its event.
type Unnumbered = (Id, EventNo);

async fn unnumbered(
    context: &Context,
    connection: &mut Connection,
    numbered: &Horizon,
) -> Result<Vec<Unnumbered>, Failure> {
    // Asked for before the batches: what begins later gets a later time.
    let quiet: Option<Option<i64>> = connection.one((QUIET_UNTIL, "clock"), &[]).await?;
    let until = if context.time.given().is_some() {
        i64::MAX
    } else {
        quiet.flatten().unwrap_or(i64::MIN)
    };
    let [first, last] = numbered.parts();
    let values = [first, last, bind(&until), bind(&FEED_BATCHES_MAX)];
    let read = |row: &mut Reader<'_>| Ok((row.get()?, row.get()?));
    let found = connection.read((UNNUMBERED, "batches"), &values, read);
    found.await
}

/// Reads where the audits of these batches' events end. This server need not know the events, nor be able to read all
/// of their rows.
async fn heads(
    connection: &mut Connection,
    batches: &[Unnumbered],
) -> Result<BTreeMap<EventNo, Head>, Failure> {
    let events: BTreeSet<EventNo> = batches.iter().map(|(_, event)| *event).collect();
    let nos = events.iter().map(|event| int(event.0));
    let nos = nos.collect::<Result<Vec<i32>, _>>()?;
    let read = |row: &mut Reader<'_>| {
        let event = row.get()?;
        let start = chain::start_of(event, row.get()?, row.get()?, row.get()?);
        let (seq, hash) = (row.get()?, row.get::<Option<&[u8]>>()?);
        let hash = hash.map_or(Ok(start), <[u8; 32]>::try_from);
        let hash = hash.map_err(|_| row.illegal("hash"))?;
        Ok((event, Head { seq, hash }))
    };
    let nos = [bind(&nos)];
    let found = connection.read((HEADS, "feed_heads"), &nos, read).await?;
    Ok(found.into_iter().collect())
}

async fn move_heads(
    connection: &mut Connection,
    heads: &BTreeMap<EventNo, Head>,
) -> Result<(), Failure> {
    let nos = heads.keys().map(|event| int(event.0));
    let nos = nos.collect::<Result<Vec<i32>, _>>()?;
    let seqs = heads.values().map(|head| to_i64(head.seq.0));
    let seqs = seqs.collect::<Result<Vec<i64>, _>>()?;
    let hashes: Vec<&[u8]> = heads.values().map(|head| head.hash.as_slice()).collect();
    let values = [bind(&nos), bind(&seqs), bind(&hashes)];
    connection.rows(MOVE_HEADS, &values).await.map(drop)
}

/// Rows of the feed.
#[derive(Default)]
struct Numbers {
    ns: Vec<i64>,
    events: Vec<i32>,
    firsts: Vec<i64>,
    commands: Vec<i32>,
    batches: Vec<Id>,
    hashes: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Numbers {
    /// Numbers the commits of one batch, and moves the head of its event past them.
    fn add(
        &mut self,
        n: i64,
        (id, event): Unnumbered,
        head: &mut Head,
        commits: &[Commit],
    ) -> Result<(), Failure> {
        self.firsts.push(to_i64(head.seq.next().0)?);
        for commit in commits {
            head.seq = head.seq.next();
            for row in AuditRow::of(commit) {
                let row = AuditRow {
                    seq: head.seq,
                    ..row
                };
                head.hash = chain::next(head.hash, &row, &mut self.bytes);
            }
        }
        self.ns.push(n);
        self.events.push(int(event.0)?);
        self.commands
            .push(i32::try_from(commits.len()).unwrap_or(i32::MAX));
        self.batches.push(id);
        self.hashes.push(head.hash.to_vec());
        Ok(())
    }

    async fn write(&self, connection: &mut Connection) -> Result<(), Failure> {
        let values = [
            bind(&self.ns),
            bind(&self.events),
            bind(&self.firsts),
            bind(&self.commands),
            bind(&self.batches),
            bind(&self.hashes),
        ];
        connection.rows(NUMBER, &values).await.map(drop)
    }
}
