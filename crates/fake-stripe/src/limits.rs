//! Every bound of fake-stripe.

use std::time::Duration;

/// Longest body of a call, bytes.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;
/// Longest idempotency key, bytes.
pub(super) const KEY_BYTES_MAX: usize = 255;
/// How long an idempotency key is kept, milliseconds: a day.
pub(super) const KEY_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long a card's authorisation lasts, milliseconds: seven days.
pub(super) const AUTHORISATION_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
/// Largest amount of an intent, minor units.
pub(super) const AMOUNT_MAX: i64 = 99_999_999;
/// Most entries of a list.
pub(super) const LIST_MAX: usize = 100;
/// Most calls and sendings (later ones are not stored), events (the oldest is dropped) and intents
/// (429 above that). Of twice as many effects on money the older half is dropped.
pub(super) const REMEMBERED_MAX: usize = 100_000;
/// Idempotency keys that are kept; of more, the oldest are removed before their day is over.
pub(super) const KEYS_MAX: usize = 10_000;
/// Intents that a file keeps after their end; of more, those that ended first are removed.
pub(super) const OVER_MAX: usize = 1_000;
/// Lines below which the file of an account is never rewritten.
pub(super) const JOURNAL_LINES_MIN: usize = 5_000;
/// Above that it is rewritten when it has this many lines for each object that is kept.
pub(super) const JOURNAL_LINES_PER_KEPT: usize = 2;
/// How often a notice is sent before it is given up.
pub(super) const TRIES_MAX: u32 = 16;
/// Back-off before the second try of a notice, milliseconds; each further one is twice as long.
pub(super) const RETRY_MS: u64 = 1_000;
/// The longest back-off, milliseconds.
pub(super) const RETRY_MS_MAX: u64 = 60 * 60 * 1_000;
/// Most notices that are being sent at the same time.
pub(super) const DELIVERIES_MAX: usize = 16;
/// Time-out of one sending of a notice, its answer included.
pub(super) const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Longest answer to a notice that is read, bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// Age of the signature of [`super::plan::Delivery::ReplayedOld`], milliseconds: ten minutes.
pub(super) const OLD_MS: i64 = 10 * 60 * 1_000;
/// Length of an answer that is longer than any client should read, bytes.
pub(super) const OVERSIZED_BYTES: usize = 4 * 1024 * 1024;

const _: () = assert!(RETRY_MS <= RETRY_MS_MAX);
const _: () = assert!(OVER_MAX < REMEMBERED_MAX);
