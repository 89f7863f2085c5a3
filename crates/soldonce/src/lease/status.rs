//! What CMD can know about its lease: variables at its start, then a line per change on a pipe.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use soldonce_clock::Clock;
use soldonce_lease::{Lease, LeaseState, LostReason};

/// The writing end of the status pipe.
#[derive(Debug)]
pub(crate) struct Status {
    pipe: Option<File>,
}

impl Status {
    pub(crate) fn to(pipe: File) -> Self {
        Self { pipe: Some(pipe) }
    }

    /// Creates a status that no process reads.
    #[cfg(test)]
    pub(crate) fn unread() -> Self {
        Self { pipe: None }
    }

    /// Writes `held DEADLINE_MS`.
    pub(crate) fn held(&mut self, deadline_ms: i64) {
        self.line(&format!("held {deadline_ms}\n"));
    }

    /// Writes `suspect`.
    pub(crate) fn suspect(&mut self) {
        self.line("suspect\n");
    }

    /// Writes `lost REASON`.
    pub(crate) fn lost(&mut self, reason: LostReason) {
        self.line(&format!("lost {reason}\n"));
    }

    /// Writes a line. A full pipe, or one without a reader, loses it: states are hints.
    fn line(&mut self, line: &str) {
        if let Some(pipe) = &mut self.pipe {
            pipe.write_all(line.as_bytes()).ok();
        }
    }
}

/// Returns the environment variables of CMD. The owner is never among them.
pub(crate) fn variables(
    clock: &dyn Clock,
    lease: &Lease,
    (name, cap, fd): (&str, Duration, i32),
) -> Vec<(&'static str, String)> {
    let remaining = match lease.state() {
        LeaseState::Held { remaining } | LeaseState::Suspect { remaining } => remaining,
        LeaseState::Lost(_) | LeaseState::Released | _ => Duration::ZERO,
    };
    let token = lease.token_for_logs().map(|token| token.to_string());
    vec![
        ("SOLDONCE_LEASE_NAME", name.to_owned()),
        ("SOLDONCE_LEASE_TOKEN", token.unwrap_or_default()),
        (
            "SOLDONCE_LEASE_DEADLINE_MS",
            after_ms(clock, remaining).to_string(),
        ),
        ("SOLDONCE_LEASE_CAP_AT_MS", after_ms(clock, cap).to_string()),
        ("SOLDONCE_LEASE_STATUS_FD", fd.to_string()),
    ]
}

/// Returns the end of a span that begins now, as wall clock milliseconds, for people and for CMD.
/// It is only informative: nothing is decided by it.
pub(crate) fn after_ms(clock: &dyn Clock, span: Duration) -> i64 {
    let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    clock.wall_ms().saturating_add(millis)
}
