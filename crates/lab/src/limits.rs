//! Every bound of the lab's work.

use std::time::Duration;

use soldonce_core::limits::UNITS_PER_CHART_MAX;

/// Most connections of one load run.
pub(crate) const LOAD_CONNECTIONS_MAX: u32 = 4_096;
/// Longest load run, seconds.
pub(crate) const LOAD_SECONDS_MAX: u64 = 3_600;
/// Highest rate of an open loop, requests per second.
pub(crate) const LOAD_RATE_MAX: u64 = 10_000_000;
/// Most viewers of a benchmark: each is a connection of the server and of the generator.
pub(crate) const VIEWERS_MAX: u32 = 50_000;
/// Most servers that have these viewers.
pub(crate) const VIEWED_SERVERS_MAX: i64 = 16;
/// Buyers of that event.
pub(crate) const VIEWERS_BUYERS: u32 = 4;
/// Changes a second while their delay is measured.
pub(crate) const VIEWERS_CHANGES_PER_S: u64 = 1_000;
/// Longest wait for all viewers of a server that was killed, milliseconds.
pub(crate) const COMEBACK_MS_MAX: u64 = 60_000;
/// First size of the buffer of a viewer.
pub(crate) const VIEWER_BUFFER_BYTES: usize = 2 * 1_024;
/// Most runs of one benchmark.
pub(crate) const BENCH_RUNS_MAX: usize = 101;
/// Load before the measured one, so that memory, caches and connections are warm, milliseconds.
pub(crate) const BENCH_WARMUP_MS: u64 = 300;
/// Requests of each scenario of a quick benchmark.
pub(crate) const BENCH_QUICK_REQUESTS: u64 = 300;
/// Rows of one commit of SQLite alone: as many as the commands of the ledger's.
pub(crate) const BENCH_SQLITE_BATCH_MAX: usize = 512;
/// Pages in its log after which they are moved into the database file, as the ledger has it.
pub(crate) const BENCH_SQLITE_LOG_PAGES: u32 = 4_096;
/// Most connections of the private database of a benchmark.
pub(crate) const BENCH_DATABASE_CONNECTIONS_MAX: usize = 148;
/// Connections of an endurance run, each with a row of seats.
pub(crate) const ENDURE_CONNECTIONS: u32 = 32;
/// Samples of the server in an endurance run.
pub(crate) const ENDURE_SAMPLES: u32 = 30;
/// Samples after which a server counts as warm: of half an hour, five minutes.
pub(crate) const ENDURE_WARM_SAMPLES: usize = 4;
/// By how many thousandths the memory of a warm server may grow.
pub(crate) const ENDURE_GROWTH_PERMILLE_MAX: u64 = 100;
/// Most seats that a storm wants.
pub(crate) const STORM_SEATS_MAX: u32 = 200;
/// Most runs of a storm at several servers.
pub(crate) const STORM_RUNS_MAX: i64 = 101;
/// Longest storm that warms a server up, seconds.
pub(crate) const STORM_WARMUP_SECONDS_MAX: u64 = 2;
/// Most buyers of one round of a race: each is a task that waits at a barrier.
pub(crate) const RACE_BUYERS_MAX: u32 = 2_000;
/// Most seats that one buyer of a race wants: what a hold may have by default.
pub(crate) const RACE_SEATS_MAX: u32 = 10;
/// Most rounds of one cell of a race.
pub(crate) const RACE_ROUNDS_MAX: u32 = 1_000;
/// Most connections of one strategy of a race.
pub(crate) const RACE_CONNECTIONS_MAX: usize = 256;
/// No round of a cell begins later than so long after the first, milliseconds.
pub(crate) const RACE_CELL_MS_MAX: u64 = 5_000;
/// Longest wait for a connection or one answer of a race's own strategies, milliseconds.
pub(crate) const RACE_ANSWER_MS: u64 = 20_000;
/// Buyers of a race's ceilings, each with one request in flight.
pub(crate) const CEILING_BUYERS: u32 = 64;
/// Most runs of a race's ceilings.
pub(crate) const CEILING_RUNS_MAX: i64 = 101;
/// Longest load of a race's ceilings, seconds.
pub(crate) const CEILING_SECONDS_MAX: u32 = 60;
/// Seats of the event of one strategy, for each second of load.
pub(crate) const CEILING_SEATS_PER_S: u32 = 25_000;
/// Holds before those that count.
pub(crate) const CEILING_WARMUP: u32 = 128;
/// Holds of one bare batch: as many as `queue` takes at once.
pub(crate) const CEILING_BATCH_MAX: usize = 256;
/// How often such a batch yields to other tasks before it is closed, while more rows come.
pub(crate) const CEILING_GATHER_TURNS_MAX: usize = 8;
/// Interval at which it is checked whether a second server knows an event.
pub(crate) const CEILING_HEARD_EVERY: Duration = Duration::from_millis(10);
/// How many times that is checked.
pub(crate) const CEILING_HEARD_TRIES: u32 = 1_000;
/// Longest wait for the answer of a bare script, or of the shield alone.
pub(crate) const CEILING_SCRIPT_WAIT: Duration = Duration::from_secs(20);
/// More requests per second than any scenario here will answer: so many seats are made ready.
pub(crate) const BENCH_RATE_EXPECTED_MAX: u64 = 80_000;
/// Holds of each run when halls are compared, and of a quick one.
pub(crate) const HALLS_HOLDS: u64 = 20_000;
pub(crate) const HALLS_HOLDS_QUICK: u64 = 300;
/// Longest time after a load's end for what is still unanswered or late.
pub(crate) const LOAD_OVERTIME_MS_MAX: u64 = 10_000;
/// Failed connects in a row after which a connection of the load gives up.
pub(crate) const CONNECT_FAILURES_MAX: u32 = 10;
/// Largest answer that the load reads, in bytes: a snapshot of the largest chart fits.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 * 1_024 * 1_024;
/// Most header fields of an answer.
pub(crate) const ANSWER_FIELDS_MAX: usize = 64;
/// Largest head of an answer, in bytes.
pub(crate) const ANSWER_HEAD_BYTES_MAX: usize = 16 * 1_024;
/// First size of the buffer for answers, in bytes; doubled when an answer is larger.
pub(crate) const ANSWER_BUFFER_BYTES: usize = 16 * 1_024;
/// Largest frame of an answer to a call: what HTTP/2 allows unless it is asked for more.
pub(crate) const CALL_FRAME_BYTES_MAX: usize = 16 * 1_024;
/// Bytes of messages after which the server is told that they were read; HTTP/2 lets it send 65,535.
pub(crate) const CALL_WINDOW_BYTES: u32 = 16 * 1_024;
/// Longest latency that is distinguished, in microseconds; a longer one counts as this.
pub(crate) const LATENCY_US_MAX: u64 = 600_000_000;
/// Decimal digits to which latencies are kept.
pub(crate) const LATENCY_DIGITS: u8 = 3;

const _: () = assert!(CEILING_WARMUP < CEILING_SEATS_PER_S);
const _: () = assert!(CEILING_SECONDS_MAX * CEILING_SEATS_PER_S <= UNITS_PER_CHART_MAX);
const _: () = assert!(ANSWER_HEAD_BYTES_MAX <= ANSWER_BUFFER_BYTES);
const _: () = assert!(ANSWER_BUFFER_BYTES < ANSWER_BYTES_MAX);
