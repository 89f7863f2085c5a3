//! Every bound of the engine. What is unbounded fails at the rush, and only there.

/// Feed entries kept per event for clients that reconnect; older ones answer with a reset.
pub const FEED_ENTRIES_MAX: usize = 4_096;
/// Entries a slow reader may be behind before it is dropped. Not more than are kept.
pub const FEED_LAG_MAX: usize = 1_024;
/// Seats per chunk of a published picture: what one change copies.
pub const PICTURE_CHUNK_SEATS: usize = 1_024;
/// Holds written down as expired by one command of the sweeper.
pub const SWEEP_HOLDS_MAX: usize = 512;
/// How often the sweeper looks, milliseconds. With one commit on top it stays below the 250 ms that
/// the API promises for an expiry to be seen.
pub const SWEEP_EVERY_MS: u64 = 100;
/// How often API keys are read again where other servers may change them, milliseconds.
pub const KEYS_EVERY_MS: u64 = 1_000;
/// How long a shopper's session lives, milliseconds: a day.
pub const SESSION_MS: u64 = 24 * 60 * 60 * 1_000;
/// Most holds or bookings in one list.
pub const LIST_MAX: usize = 100;
/// Most transitions in one unit's history.
pub const UNIT_HISTORY_MAX: usize = 1_000;
/// Longest idempotency key, bytes.
pub const KEY_BYTES_MAX: usize = 255;
/// Longest window over which requests are counted, seconds.
pub const RATE_WINDOW_S_MAX: u32 = 24 * 60 * 60;
/// Most requests in one second of a window: the arithmetic counts whole microseconds.
pub const RATE_PER_SECOND_MAX: u32 = 1_000_000;
/// Longest wait for Redis to say what other servers counted, milliseconds.
pub const SHARED_RATE_WAIT_MS: u64 = 50;
/// Longest wait for a connection to that Redis, milliseconds. Requests do not wait for it.
pub const SHARED_RATE_CONNECT_MS: u64 = 2_000;
/// Failures in a row after which Redis is not asked for [`SHARED_RATE_PAUSE_MS`].
pub const SHARED_RATE_FAILURES_MAX: u32 = 3;
/// Pause after [`SHARED_RATE_FAILURES_MAX`] failures in a row, milliseconds.
pub const SHARED_RATE_PAUSE_MS: u64 = 1_000;

const _: () = assert!(FEED_LAG_MAX <= FEED_ENTRIES_MAX);
const _: () = assert!(SWEEP_EVERY_MS < 250);
const _: () = assert!(SHARED_RATE_WAIT_MS < SHARED_RATE_PAUSE_MS);
