//! The crash rig (R2): a real server is killed, its writes and syncs fail, its disk is full, its
//! files are damaged; after each of these nothing that was acknowledged may be missing, and nothing
//! may be there that no client asked for.
//!
//! Failure: an acknowledged hold or booking that is gone or differs (I14); an effect without its
//! attempt (I15); a repeated key with another answer or a second effect (I12); a unit sold twice
//! (I1); a fence that falls (I6); an acknowledgement after the disk failed (I27); damage that shows
//! as a wrong answer (I25); a `verify` that fails (I20). No failure: a request without an answer,
//! done or not; a start that is refused; refusals by the rules. Not simulated: a disk that
//! lies about its syncs.
//!
//! Reading order: what a client knows (`cards`), what it does (`load`), what must hold after a
//! restart (`check`, `units`), then one file per fault.
//!
//! By hand: `SOLDONCE_CRASH_SEED` chooses the seed, `SOLDONCE_CRASH_TIMES` multiplies the budget.

#![expect(
    clippy::print_stdout,
    reason = "a rig says what it counted, and where a failure was kept"
)]
#![expect(
    clippy::indexing_slicing,
    reason = "an index that is wrong fails the test that made it"
)]

mod cards;
mod check;
pub(crate) mod client;
mod damage;
mod draw;
mod load;
mod picture;
mod scratch;
pub(crate) mod server;
mod short_log;
mod trace;
mod units;

mod full;
mod injected;
mod kills;
mod power;

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::scratch::Scratch;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Which one, by its number in the list of invariants.
    invariant: &'static str,
    what: String,
}

impl Violation {
    fn new(invariant: &'static str, what: impl Into<String>) -> Self {
        Self {
            invariant,
            what: what.into(),
        }
    }
}

/// Which run this is and how large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    name: &'static str,
    seed: u64,
    /// How many times the usual budget.
    times: usize,
}

impl Run {
    fn new(name: &'static str) -> Self {
        let number = |variable: &str| std::env::var_os(variable)?.to_str()?.parse().ok();
        Self {
            name,
            seed: number("SOLDONCE_CRASH_SEED").unwrap_or(0x50_1d_0c_e5),
            times: number("SOLDONCE_CRASH_TIMES")
                .map_or(1, |times: u64| usize::try_from(times).unwrap()),
        }
    }

    /// Passes when nothing was broken, else says everything that is needed to look into it.
    fn require_none(&self, at: &str, violations: &[Violation], scratch: &Scratch) {
        if violations.is_empty() {
            return;
        }
        let mut text = String::new();
        for Violation { invariant, what } in violations {
            writeln!(text, "VIOLATION {invariant} {what}").unwrap();
        }
        let (name, seed) = (self.name, self.seed);
        panic!(
            "{text}  rig R2 {name}  seed {seed}  at {at}\n  kept    {}\n  replay  \
             SOLDONCE_CRASH_SEED={seed} cargo nextest run -p soldonce crash::{name}",
            scratch.kept().display(),
        );
    }
}

/// Threads of the runs that do not depend on each other.
const THREADS: usize = 2;

/// Does `0..count`, each once, on a few threads.
fn in_parallel(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| std::iter::from_fn(take).for_each(&work));
        }
    });
}
