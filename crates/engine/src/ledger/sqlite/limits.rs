//! Every bound of the SQLite ledger.

/// Commands that may wait for the writer; one more is answered `Overloaded`.
pub(super) const QUEUE_MAX: usize = 8_192;
/// Commands of one commit. The batch follows the queue, never a timer.
pub(super) const BATCH_MAX: usize = 512;
/// Pages in the write-ahead log at which a checkpoint moves them into the database file: 16 MiB.
pub(super) const WAL_PAGES_MAX: u32 = 4_096;
/// Bytes of a page.
pub(super) const PAGE_BYTES: u32 = 4_096;
/// Page cache of the writer, KiB. SQLite iterates over all of it at the end of each transaction
/// that split a page in the middle of a table: with 64 MiB that was a twelfth of the writer's time.
pub(super) const WRITER_CACHE_KIB: i64 = 16_384;
/// Page cache of each reader, KiB.
pub(super) const READER_CACHE_KIB: i64 = 4_096;
/// Connections that read.
pub(super) const READERS_MAX: usize = 4;
/// Reads that may wait for a connection; one more is refused.
pub(super) const READS_WAITING_MAX: usize = 1_024;
/// Prepared statements kept per connection: all there are.
pub(super) const STATEMENTS_MAX: usize = 96;
/// Most idempotency records deleted by one commit: more than one can add, so the table shrinks.
pub(super) const FORGET_MAX: u64 = 2 * BATCH_MAX as u64;
/// Rows of a dropped event that one transaction deletes, one booking's lines more or less.
pub(super) const CLEAR_ROWS_MAX: usize = 1_000;

const _: () = assert!(BATCH_MAX <= QUEUE_MAX);
const _: () = assert!(FORGET_MAX > BATCH_MAX as u64);
const _: () = assert!(READERS_MAX <= READS_WAITING_MAX);
