//! The machine: clocks and limits.

use soldonce_clock::{Clock, SystemClock};
use soldonce_engine::ledger::sqlite;
use soldonce_engine::limits::CLOCK_LEAST_MS;
use soldonce_server::limits::CONNECTIONS_MAX;

use super::Finding;
use crate::serve::descriptors_for;

pub(super) fn look() -> Vec<Finding> {
    vec![
        Finding::good("soldonce", env!("CARGO_PKG_VERSION")),
        clock(),
        open_files(),
        Finding::good("SQLite", sqlite::library_version()),
    ]
}

fn clock() -> Finding {
    let now = SystemClock.wall_ms();
    let shown = soldonce_engine::reply::Rfc3339(soldonce_core::Timestamp::from_ms(now)).to_string();
    if now < CLOCK_LEAST_MS {
        return Finding::wrong("clock", shown, "set the clock: holds end by it");
    }
    Finding::good("clock", shown)
}

fn open_files() -> Finding {
    // A server raises its own limit up to this one.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let shown = limit.map_or_else(|| "no limit".to_owned(), |limit| format!("{limit} files"));
    let fix = "raise the hard limit (`ulimit -Hn`, or LimitNOFILE of the service) to 256 more than \
               `--limit-connections` (default 10,000)";
    let is_low = limit.is_some_and(|limit| limit < descriptors_for(CONNECTIONS_MAX));
    Finding::remark_if("open files", shown, is_low.then_some(fix))
}
