//! The rig's teeth: bugs planted in the ledger, each of which must be seen and named.

use super::Run;
use super::injected::{Before, Fault, Injection, Log};
use super::scratch::Scratch;

/// A bug and where it shows.
struct Bug {
    name: &'static str,
    call: &'static str,
    fault: Fault,
    /// The invariants that it breaks: one of them must be named.
    breaks: &'static [&'static str],
}

const BUGS: [Bug; 4] = [
    Bug {
        name: "fsync-retry",
        call: "fsync",
        fault: Fault::Error("EIO"),
        breaks: &["I27"],
    },
    Bug {
        name: "ack-before-commit",
        call: "pwrite64",
        fault: Fault::Error("EIO"),
        breaks: &["I14"],
    },
    Bug {
        name: "memory-ahead",
        call: "pwrite64",
        fault: Fault::Error("EIO"),
        breaks: &["I14"],
    },
    Bug {
        name: "key-outside-commit",
        call: "pwrite64",
        fault: Fault::Kill,
        breaks: &["I12"],
    },
];
/// Calls that are tried until the bug is seen.
const TRIES: usize = 60;

#[test]
fn every_planted_bug_of_the_ledger_is_caught() {
    let run = Run::new("planted");
    let scratch = Scratch::new(&run);
    let before = Before::make(&run, &scratch);
    for bug in BUGS {
        let caught = (1..=TRIES).find_map(|nth| {
            let (_, violations) = before.run(Injection {
                call: bug.call,
                fault: bug.fault,
                nth,
                planted: Some(bug.name),
                log: Log::Long,
            });
            let named = |invariant: &&str| bug.breaks.contains(invariant);
            let seen = violations.into_iter().find(|seen| named(&seen.invariant))?;
            Some((nth, seen))
        });
        let Some((nth, seen)) = caught else {
            panic!("{} was missed in {TRIES} tries", bug.name);
        };
        println!(
            "planted {}: caught at {} {nth}: {} {:.60}",
            bug.name, bug.call, seen.invariant, seen.what
        );
    }
}
