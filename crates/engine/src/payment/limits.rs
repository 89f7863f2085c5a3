//! Every bound of payments.

use crate::limits::PROVIDER_KEY_BYTES_MAX;

/// Longest idempotency key that is given to a provider, bytes: room is left for the state that an
/// intent is in, and for an ending.
pub const GIVEN_KEY_BYTES_MAX: usize = PROVIDER_KEY_BYTES_MAX - 26;
/// Longest wait for an answer of Stripe, all tries of one call together, milliseconds: so long a buyer
/// waits for a provider that hangs.
pub const STRIPE_CALL_MS: u64 = 15_000;
/// Longest wait for a connection to Stripe, milliseconds.
pub const STRIPE_CONNECT_MS: u64 = 5_000;
/// How often one call is made in all while its outcome is not known.
pub const STRIPE_TRIES_MAX: u32 = 3;
/// Most keys of one step in all, when Stripe's failures use them up: then the step is stuck for a day.
pub const STRIPE_KEYS_MAX: u32 = 9;
/// Wait before it is made again, milliseconds; the next one is twice as long.
pub const STRIPE_RETRY_MS: u64 = 250;
/// Longest such wait, milliseconds. Where Stripe names a longer one, the call ends, and its caller
/// is told how long to wait.
pub const STRIPE_RETRY_AFTER_MS_MAX: u64 = 2_000;
/// Longest answer of Stripe that is read, bytes.
pub const STRIPE_ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Most refunds in one answer of Stripe's list.
pub const STRIPE_PAGE_MAX: usize = 100;
/// Most refunds of one intent.
pub const STRIPE_REFUNDS_MAX: usize = 1_000;
/// Longest notice of Stripe that is read, bytes.
pub const STRIPE_NOTICE_BYTES_MAX: usize = 256 * 1024;
/// Longest signature header of a notice, bytes.
pub const STRIPE_SIGNATURE_BYTES_MAX: usize = 4 * 1024;
/// Most signatures in one such header.
pub const STRIPE_SIGNATURES_MAX: usize = 16;
/// Shortest signing secret of notices, bytes.
pub const STRIPE_SIGNING_SECRET_BYTES_MIN: usize = 16;
/// How far the time of a signature may be from ours, both ways, milliseconds.
pub const STRIPE_TOLERANCE_MS: u64 = 300_000;

const _: () = assert!(STRIPE_KEYS_MAX < 10, "an ending is a dot and a digit");
const _: () = assert!(STRIPE_RETRY_MS <= STRIPE_RETRY_AFTER_MS_MAX);
