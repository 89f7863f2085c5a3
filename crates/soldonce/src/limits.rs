//! Every bound of the command line tool's own work. The server's are in `soldonce_server::limits`.

/// Interval at which a server checks whether its ledger takes commands, milliseconds.
pub(crate) const FAULT_LOOK_MS: u64 = 1_000;
/// How long a server whose ledger failed answers reads at least, before it ends to be restarted,
/// milliseconds.
pub(crate) const FAULT_READ_ONLY_MS: u64 = 10_000;
/// What the disk must store before that, bytes: as much as a start writes, and the first commits.
pub(crate) const FAULT_PROBE_BYTES: usize = 256 * 1_024;
/// How often a server reads its certificate again, milliseconds.
pub(crate) const TLS_LOOK_MS: u64 = 60_000;
/// Days before the end of its certificate from which on a server warns of it.
pub(crate) const TLS_WARN_DAYS: i64 = 3;
/// Most bots of a demo.
pub(crate) const DEMO_BOTS_MAX: u32 = 1_000;
/// Bookings that a bot keeps before it cancels its oldest: the hall never stays sold out.
pub(crate) const DEMO_BOT_BOOKINGS_MAX: usize = 3;
/// Percent of an event's units that bots leave free for visitors.
pub(crate) const DEMO_FREE_PERCENT_MIN: u32 = 40;
/// Interval at which the demo's bank checks whether a silence is over, milliseconds.
pub(crate) const DEMO_BANK_EVERY_MS: u64 = 250;
/// How long the silent bank of the demo is silent, milliseconds.
pub(crate) const DEMO_BANK_SILENCE_MS: u64 = 30_000;
/// Most payments of the demo whose bank is silent.
pub(crate) const DEMO_SILENCES_MAX: usize = 10_000;
