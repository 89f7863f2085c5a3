//! Every bound of the rules. What is unbounded fails at the rush, and only there.

/// Longest legal id, in bytes (api.md 2).
pub const ID_BYTES_MAX: usize = 64;
/// Most units one hold may have (api.md 7).
pub const UNITS_PER_HOLD_MAX: u32 = 64;
/// Most units one chart may have.
pub const UNITS_PER_CHART_MAX: u32 = 4_000_000;
/// Most areas one chart may have: each is listed in every snapshot.
pub const AREAS_PER_CHART_MAX: usize = 1_000;
/// Most price classes one chart may have.
pub const CATEGORIES_PER_CHART_MAX: usize = 1_000;
/// Longest name, label, reason or reference, in characters.
pub const TEXT_CHARS_MAX: usize = 256;
/// Shortest hold (api.md 7).
pub const HOLD_TTL_MS_MIN: u64 = 1_000;
/// Longest life of a hold with all its extensions: a day.
pub const HOLD_LIFETIME_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Longest payment or retry window: a day.
pub const WINDOW_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// How long an event stays at least after its end and its last commit: longer than its idempotency
/// records (25 hours) and the deliveries of its webhooks (a week).
pub const DROP_AFTER_MS_MIN: u64 = 8 * 24 * 60 * 60 * 1_000;
/// Largest price of one unit in minor units. With [`UNITS_PER_HOLD_MAX`] a total cannot overflow.
pub const PRICE_MAX: i64 = 1_000_000_000_000;
/// Most units a staff command may block, unblock or sell at once.
pub const UNITS_PER_STAFF_COMMAND_MAX: usize = 10_000;
/// Units of holds after which one command ends no more of them: the sweeper's, and the one that calls an event off.
pub const ENDED_UNITS_MAX: usize = 4_096;
/// Most alternatives offered with a refusal.
pub const ALTERNATIVES_MAX: usize = 3;
/// Rows searched for alternatives to a refused seat, nearest first.
pub const ALTERNATIVE_ROWS_MAX: usize = 25;
/// How far away, in rows, they may be: rows of another price class are skipped at next to no cost.
pub const ALTERNATIVE_REACH_MAX: u32 = 64;
/// Seats searched in such a row, on each side of where the wanted ones would be.
pub const ALTERNATIVE_SEATS_MAX: u32 = 128;

const _: () = assert!(HOLD_TTL_MS_MIN < HOLD_LIFETIME_MS_MAX);
const _: () = assert!(UNITS_PER_HOLD_MAX < ALTERNATIVE_SEATS_MAX);
const _: () = assert!(PRICE_MAX.checked_mul(UNITS_PER_HOLD_AS_I64).is_some());
const _: () = assert!(
    PRICE_MAX
        .checked_mul(UNITS_PER_STAFF_COMMAND_AS_I64)
        .is_some()
);

#[expect(
    clippy::as_conversions,
    reason = "no other conversion is const; it widens"
)]
const UNITS_PER_HOLD_AS_I64: i64 = UNITS_PER_HOLD_MAX as i64;
#[expect(clippy::as_conversions, reason = "no other conversion is const")]
#[expect(clippy::cast_possible_wrap, reason = "ten thousand")]
const UNITS_PER_STAFF_COMMAND_AS_I64: i64 = UNITS_PER_STAFF_COMMAND_MAX as i64;
