//! Every bound of the engine. What is unbounded fails at the rush, and only there.

/// Commits kept per event for readers of the feed that come again or are slow; older ones answer with a
/// reset.
pub const FEED_COMMITS_MAX: usize = 4_096;
/// Seats per chunk of a published snapshot: what one change copies.
pub const SNAPSHOT_CHUNK_SEATS: usize = 1_024;
/// Transitions after which a batch takes no more commands, one command's more or less, so that a
/// few large ones do not make all others wait.
pub(crate) const BATCH_STEPS_MAX: usize = 4_096;
/// How often the sweeper runs, milliseconds. With one commit and a frame of the default tick on top
/// it stays below the 250 ms that the API promises for an expiry to be seen.
pub const SWEEP_EVERY_MS: u64 = 100;
/// How far the ledger's clock may be ahead before operators are told, milliseconds.
pub const CLOCK_AHEAD_MS: i64 = 1_000;
/// How far it is ahead when that is a state of its own, which an operator should correct,
/// milliseconds: an hour.
pub const CLOCK_FAR_AHEAD_MS: i64 = 3_600_000;
/// 2026-01-01: a machine's clock that reads less was never set.
pub const CLOCK_LEAST_MS: i64 = 1_767_225_600_000;
/// How often API keys are read again where other servers may change them, milliseconds. With the reading on
/// top it stays below the second within which the API promises that a revoked key is refused everywhere.
pub const KEYS_EVERY_MS: u64 = 500;
/// How often rows of dropped events are looked for, milliseconds.
pub const CLEAR_EVERY_MS: u64 = 1_000;
/// How often events are looked for that have been over for as long as the operator keeps them, milliseconds.
pub const DROP_EVERY_MS: u64 = 60_000;
/// Most that the ledger's clock may have gained on others while events are dropped by it: an hour.
pub const DROP_CLOCK_OFF_MS_MAX: i64 = 60 * 60 * 1_000;
/// How long a shopper's session lives, milliseconds: a day.
pub const SESSION_MS: u64 = 24 * 60 * 60 * 1_000;
/// Most holds or bookings in one list.
pub const LIST_MAX: usize = 100;
/// Most holds or bookings that are looked at for one page of a list that names which it means.
pub const LIST_LOOK_MAX: usize = 10 * LIST_MAX;
/// Most transitions in one unit's history: the newest.
pub const UNIT_HISTORY_MAX: usize = 1_000;
/// Longest idempotency key, bytes.
pub const KEY_BYTES_MAX: usize = 255;
/// Longest window over which requests are counted, seconds.
pub const RATE_WINDOW_S_MAX: u32 = 24 * 60 * 60;
/// Most requests in one second of a window: the arithmetic counts whole microseconds.
pub const RATE_PER_SECOND_MAX: u32 = 1_000_000;
/// Longest wait for the answer of a Redis that nothing depends on, milliseconds.
pub const REDIS_WAIT_MS: u64 = 50;
/// Longest wait for a connection to that Redis, milliseconds. Requests do not wait for it.
pub const REDIS_CONNECT_MS: u64 = 2_000;
/// Failures in a row after which it is not asked for [`REDIS_PAUSE_MS`].
pub const REDIS_FAILURES_MAX: u32 = 3;
/// Pause after [`REDIS_FAILURES_MAX`] failures in a row, milliseconds.
pub const REDIS_PAUSE_MS: u64 = 1_000;
/// How long a claim of the shield between servers keeps others away, milliseconds: what a request
/// needs from there through the ledger, and how long units are refused when its server dies.
pub const SHIELD_CLAIM_MS: u64 = 2_000;
/// How much earlier than the ledger it lets go of a hold, milliseconds: as far as clocks may differ.
pub const SHIELD_EARLY_MS: u64 = 250;
/// How long a unit is taken to be sold or held before one request asks the ledger again, milliseconds. No
/// entry is believed for longer, and a zone is forgotten so long after the last one: a wrong entry in Redis
/// refuses a unit for no longer than this.
pub const SHIELD_BELIEF_MS: u64 = 10 * 60 * 1_000;
/// How much of that is left out at random, so that not all units are asked for at once.
pub const SHIELD_SOLD_JITTER_MS: u64 = 60 * 1_000;
/// How long an area is taken to be full after the ledger said so, milliseconds.
pub const SHIELD_FULL_MS: u64 = 2_000;
/// Most units of one call of that shield, as its scripts have it.
pub const SHIELD_UNITS_MAX: usize = 100;
/// Most messages to that shield that wait: at most [`SHIELD_UNITS_MAX`] notes each, or claims to be given up.
pub const SHIELD_MESSAGES_MAX: usize = 4_096;
/// Longest idempotency key for a payment provider, bytes.
pub const PROVIDER_KEY_BYTES_MAX: usize = 255;
/// Longest name of a thing at a payment provider, bytes.
pub const PROVIDER_ID_BYTES_MAX: usize = 255;

/// How often the log repeats a failure that lasts, milliseconds.
pub const TROUBLE_EVERY_MS: u64 = 30_000;
/// How often the outbox is looked at, milliseconds.
pub const OUTBOX_EVERY_MS: u64 = 200;
/// Effects that are carried out at once.
pub const OUTBOX_AT_ONCE_MAX: usize = 64;
/// How long effects are left to the server that works on them, milliseconds. It asks for more while it
/// lives; another one that comes too early asks the provider with the same keys.
pub const OUTBOX_KEEP_MS: u64 = 15_000;
/// How long the request that began a payment has to ask for its intent, milliseconds.
pub const OUTBOX_AUTHORISE_AFTER_MS: u64 = 5_000;
/// First pause before an effect is tried again, milliseconds; it doubles each time.
pub const OUTBOX_PAUSE_MS: u64 = 250;
/// Longest pause, milliseconds.
pub const OUTBOX_PAUSE_MS_MAX: u64 = 60_000;
/// Failed attempts after which a person should look.
pub const OUTBOX_ALERT_TRIES: u32 = 6;
/// How often payments are compared with the provider, milliseconds.
pub const RECONCILE_EVERY_MS: u64 = 15_000;
/// How old they are before they are compared, milliseconds: notices usually come at once.
pub const RECONCILE_OLDER_MS: u64 = 30_000;
/// Payments that are compared in one step.
pub const RECONCILE_AT_ONCE_MAX: usize = 256;
/// Most refusals of a refund that a repair passes.
pub const REPAIR_REFUSALS_MAX: u32 = 8;

/// Most webhook endpoints of a ledger.
pub const WEBHOOK_ENDPOINTS_MAX: usize = 16;
/// Longest URL of an endpoint, bytes.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;
/// How often due deliveries are looked for, milliseconds.
pub const WEBHOOK_EVERY_MS: u64 = 200;
/// Deliveries to one endpoint that are under way at once.
pub const WEBHOOK_AT_ONCE_MAX: usize = 16;
/// Longest wait for a connection to an endpoint, milliseconds.
pub const WEBHOOK_CONNECT_MS: u64 = 5_000;
/// Longest attempt in all, milliseconds.
pub const WEBHOOK_CALL_MS: u64 = 15_000;
/// How long a delivery is left to the server that works on it, milliseconds. It asks for more while it
/// lives, so an attempt may take longer; when it is killed, another server delivers so much later.
pub const WEBHOOK_KEEP_MS: u64 = 10_000;
/// Pauses before a delivery is tried again, milliseconds; after the last one it is given up.
pub const WEBHOOK_PAUSES_MS: [u64; 9] = [
    5_000,
    5 * 60_000,
    30 * 60_000,
    2 * 3_600_000,
    5 * 3_600_000,
    10 * 3_600_000,
    14 * 3_600_000,
    20 * 3_600_000,
    24 * 3_600_000,
];
/// Longest pause of an endpoint because its answer asked for it, milliseconds: an hour.
pub const WEBHOOK_QUIET_MS_MAX: u64 = 3_600_000;
/// How long a secret still signs together with its successor, milliseconds: a day.
pub const WEBHOOK_OLD_SECRET_MS: u64 = 24 * 3_600_000;
/// How long deliveries that are over stay in the log, and what waits for a disabled endpoint,
/// milliseconds: a week.
pub const WEBHOOK_LOG_MS: u64 = 7 * 24 * 3_600_000;
/// Deliveries that leave the log in one commit.
pub const WEBHOOK_FORGET_MAX: usize = 512;
/// How often the log is looked through for old ones, milliseconds.
pub const WEBHOOK_FORGET_EVERY_MS: u64 = 60_000;

/// How long every ledger keeps an idempotency record, milliseconds: the 24 hours that are promised, and
/// one more for clocks of servers that differ.
pub const IDEMPOTENCY_MS: i64 = 25 * 60 * 60 * 1_000;

/// Idempotency records that a ledger in a folder keeps: of more, the oldest go before their time. Each
/// takes 7 bytes of memory, so all of them some 55 MB. Those of refunds and cancellations stay in the
/// file for good all the same.
pub const IDEMPOTENCY_KEYS_MAX: u64 = 1 << 23;
/// Idempotency keys that are kept whole in memory, the newest ones: some 3 MB.
pub(crate) const IDEMPOTENCY_KEYS_NEWEST: usize = 1 << 16;

#[expect(clippy::cast_possible_truncation, reason = "a hundred")]
const _: () = assert!(soldonce_core::limits::UNITS_PER_HOLD_MAX <= SHIELD_UNITS_MAX as u32);
const _: () = assert!(CLOCK_AHEAD_MS < CLOCK_FAR_AHEAD_MS);
const _: () = assert!(SWEEP_EVERY_MS < 250);
const _: () = assert!(KEYS_EVERY_MS < 1_000);
const _: () = assert!(REDIS_WAIT_MS < REDIS_PAUSE_MS);
const _: () = assert!(WEBHOOK_CONNECT_MS <= WEBHOOK_CALL_MS);
const _: () = assert!(10 * WEBHOOK_EVERY_MS <= WEBHOOK_KEEP_MS);
const _: () = assert!(BATCH_STEPS_MAX <= soldonce_core::limits::UNITS_PER_STAFF_COMMAND_MAX);
