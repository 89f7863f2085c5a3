//! Every bound of the PostgreSQL ledger.

/// Commands that may wait for one event.
pub(super) const QUEUE_MAX: usize = 4_096;
/// Most commands of one statement.
pub(super) const BATCH_MAX: usize = 256;
/// How often a batch yields, while more commands come, before it is sent.
pub(super) const GATHER_TURNS_MAX: usize = 8;
/// How often a command is decided anew because others wrote first, before it is refused as
/// overloaded.
pub(super) const TRIES_MAX: usize = 20;
/// How often others may have written first before the whole cache of the event is read anew.
pub(super) const BELIEVED_TRIES_MAX: usize = 5;
/// Longest wait for a connection or for one answer, milliseconds.
pub(super) const ANSWER_MS: u64 = 5_000;
/// Longest wait for the event's advisory lock, milliseconds: after [`CLOCK_OFF_MS`] the decision is void.
pub(super) const EVENT_LOCK_MS: u64 = 200;
/// Longest wait for a row that another server has locked, milliseconds. Below [`ANSWER_MS`], so that
/// the database gives up first and says so.
pub(super) const LOCK_MS: u64 = 3_000;
/// Longest wait of a new webhook endpoint for the commands under way, milliseconds: others wait behind
/// it.
pub(super) const ENDPOINT_LOCK_MS: u64 = 250;
/// Time-out of a transaction with locks whose server sends nothing, milliseconds.
pub(super) const IDLE_MS: u64 = 2_000;
/// How far a server's estimate of the database's clock may be off at a commit, milliseconds (T1).
pub(super) const CLOCK_OFF_MS: i64 = 250;
/// The same for a change of the event itself, which has the event's lock exclusively: to end holds
/// of a large hall may take longer than [`CLOCK_OFF_MS`].
pub(super) const CHANGE_OFF_MS: i64 = 5_000;
/// How far ahead of the clock a cancellation is decided at most, once it was too slow,
/// milliseconds: holds that end until then have expired, so none ends before the commit.
pub(super) const CANCEL_AHEAD_MS_MAX: u64 = 1_500;
/// Holders of an event whose rows are cached though they hold and have bought nothing: about 1 MB.
pub(super) const HOLDERS_IDLE_MAX: usize = 8_192;
/// How often the clock row is advanced, milliseconds.
pub(super) const CLOCK_EVERY_MS: u64 = 200;
/// How often the sequencer looks for batches without numbers, milliseconds.
pub(super) const NUMBER_EVERY_MS: u64 = 20;
/// How long the session of a program that has just ended may still be seen, milliseconds.
pub(super) const SESSION_END_MS: u64 = 2_000;
/// Longest wait of a correction of the clock for commits without numbers, milliseconds.
pub(super) const CORRECT_WAIT_MS: u64 = 10_000;
/// How often a server looks for what others wrote, milliseconds.
pub(super) const FOLLOW_EVERY_MS: u64 = 25;
/// How often a server looks for events that others changed, milliseconds.
pub(super) const RENEWED_EVERY_MS: u64 = 200;
/// How often a server looks how far the feed is behind, milliseconds.
pub(super) const FEED_LOOK_MS: u64 = 1_000;
/// How old a commit without a number may be before that is logged, milliseconds.
pub(super) const FEED_LATE_MS: u64 = 5_000;
/// How many transactions may begin in the cluster after one that is open before that one is logged.
pub(super) const LEFT_OPEN_MAX: i32 = 100_000;
/// Longest wait of a list of holds for the caches of events, milliseconds: for those that are
/// locked for longer, the database is read.
pub(super) const HOLDS_WAIT_MS: u64 = 100;
/// Connections at once for events that others wrote to.
pub(super) const FOLLOW_CONNECTIONS_MAX: usize = 4;
/// Events that are swept at once.
pub(super) const SWEEPS_MAX: usize = 16;
/// Longest wait of a sweep for events that take long, milliseconds.
pub(super) const SWEEP_WAIT_MS: u64 = 100;
/// Back-off of an event that could not be published or swept, milliseconds.
pub(super) const AGAIN_MS: u64 = 1_000;
/// Transitions that a server keeps of batches it wrote and has not published yet: about 20 MB.
pub(super) const OWN_STEPS_MAX: usize = 65_536;
/// Batches that are numbered or published in one step.
pub(super) const FEED_BATCHES_MAX: i64 = 1_000;
/// Units of a new event that one statement adds.
pub(super) const ADD_UNITS_MAX: i32 = 100_000;
/// Rows of a dropped event that one transaction deletes, one batch's more or less.
pub(super) const CLEAR_ROWS_MAX: i64 = 1_000;
/// Attempts to find an unknown outcome before the caller is told that it is unknown.
pub(super) const RESOLVE_TRIES: usize = 4;
/// Longest time for all these attempts, milliseconds.
pub(super) const RESOLVE_MS: u64 = 10_000;
/// Pause between two of them, milliseconds.
pub(super) const RESOLVE_EVERY_MS: u64 = 250;
/// Longest wait of an operator's command for one answer, milliseconds: of a verification, of a correction of the
/// clock, and of a migration for the one that another process runs.
pub(super) const OPERATOR_ANSWER_MS: u64 = 10 * 60 * 1_000;
/// Batches of an event that are looked through in one step of a verification.
pub(super) const VERIFY_BATCHES: i64 = 1_000;
/// Rows that a verification reads in one step, one batch's more or less.
pub(super) const VERIFY_ROWS: usize = 10_000;

const _: () = assert!(EVENT_LOCK_MS + LOCK_MS < ANSWER_MS);
const _: () = assert!(EVENT_LOCK_MS < CLOCK_OFF_MS.unsigned_abs());
// It waits that long with its locks before it is committed.
const _: () = assert!(CANCEL_AHEAD_MS_MAX < IDLE_MS);
const _: () = assert!(CANCEL_AHEAD_MS_MAX < CHANGE_OFF_MS.unsigned_abs());
const _: () = assert!(ENDPOINT_LOCK_MS < LOCK_MS);
const _: () = assert!(BELIEVED_TRIES_MAX < TRIES_MAX);
// What waits for such a transaction gets its locks.
const _: () = assert!(IDLE_MS < LOCK_MS);
