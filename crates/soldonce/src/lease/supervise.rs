//! Keeps CMD and its lease together: CMD ends before the lease does. Written against a lease, a
//! clock, something to supervise and a source of signals, so that tests replace all four.

use std::time::Duration;

use rustix::process::Signal;
use soldonce_clock::{BootTime, Clock};
use soldonce_lease::{LeaseRef, LeaseState, LostReason};

use super::child::{Change, Supervised};
use super::signals::SignalSource;
use super::status::{Status, after_ms};

/// Time for CMD after SIGTERM when the backend says that the lease has ended.
const GRACE_AFTER_LOSS: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// From SIGTERM to SIGKILL.
    pub(crate) grace: Duration,
    /// From SIGKILL to the deadline of the lease.
    pub(crate) margin: Duration,
    /// Between two checks of a deadline that renewals move.
    pub(crate) look: Duration,
}

/// How CMD ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself.
    Alone(u8),
    /// By us, because of the lease: lost for this reason, or `None` if it was not renewed in time.
    ForLease(Option<LostReason>),
}

/// The parts of a run.
pub(crate) struct Supervisor<'a, C, S> {
    pub(crate) clock: &'a dyn Clock,
    pub(crate) lease: LeaseRef,
    pub(crate) child: &'a mut C,
    pub(crate) signals: &'a mut S,
    pub(crate) status: Status,
    pub(crate) times: Times,
}

/// SIGTERM was sent, which is final.
#[derive(Clone, Copy, Debug)]
struct Ending {
    why: Option<LostReason>,
    kill_at: BootTime,
}

impl<C: Supervised, S: SignalSource> Supervisor<'_, C, S> {
    /// Waits for the end of CMD, and ends it if the lease is about to end.
    pub(crate) async fn run(&mut self) -> Ended {
        let mut seen = self.lease.state();
        let mut ending: Option<Ending> = None;
        let mut told_ms = i64::MIN;
        // A command that was stopped goes on only after a look at its lease.
        let mut is_continued = false;
        loop {
            ending = ending.or_else(|| self.judge());
            let wake_at = match ending {
                Some(Ending { why, kill_at }) if self.clock.boot() >= kill_at => {
                    self.kill().await;
                    return Ended::ForLease(why);
                }
                Some(Ending { kill_at, .. }) => kill_at,
                None => self.tell_deadline(&mut told_ms),
            };
            if std::mem::take(&mut is_continued) {
                self.child.resume();
            }
            tokio::select! {
                biased;
                change = self.child.change() => match (change, ending) {
                    (Change::Ended(_), Some(Ending { why, .. })) => return Ended::ForLease(why),
                    (Change::Ended(code), None) => return Ended::Alone(code),
                    (Change::Stopped, ending) => {
                        // One that is to end is not waited for.
                        if ending.is_none() {
                            self.child.stop_along();
                        }
                        is_continued = true;
                    }
                },
                state = self.lease.changed(seen) => {
                    seen = state;
                    self.tell(state);
                }
                signal = self.signals.next() => match signal {
                    Signal::CONT => is_continued = true,
                    signal => self.child.signal(signal),
                },
                () = self.clock.sleep_until(wake_at) => {}
            }
        }
    }

    async fn kill(&mut self) {
        self.child.signal(Signal::KILL);
        while self.child.change().await == Change::Stopped {}
    }

    /// Sends SIGTERM if the lease has ended or is about to; None while CMD may go on.
    fn judge(&mut self) -> Option<Ending> {
        let now = self.clock.boot();
        let Times { grace, margin, .. } = self.times;
        let (why, grace) = match self.lease.state() {
            LeaseState::Held { remaining } | LeaseState::Suspect { remaining } => {
                // What is left until the kill; the deadline itself if this process was stopped.
                let left = remaining.saturating_sub(margin);
                if left > grace {
                    return None;
                }
                (None, left)
            }
            LeaseState::Lost(LostReason::Deadline) => (Some(LostReason::Deadline), Duration::ZERO),
            LeaseState::Lost(reason) => (Some(reason), grace.min(GRACE_AFTER_LOSS)),
            // No other process releases it, and CMD must not work without it.
            LeaseState::Released | _ => (None, Duration::ZERO),
        };
        self.child.signal(Signal::TERM);
        let kill_at = now.plus(grace);
        Some(Ending { why, kill_at })
    }

    /// Writes a deadline that has moved to the status pipe, and returns when to check again.
    fn tell_deadline(&mut self, told_ms: &mut i64) -> BootTime {
        let remaining = self.lease.remaining();
        let deadline = after_ms(self.clock, remaining);
        // Two readings of one deadline may differ by a rounding.
        if deadline > told_ms.saturating_add(1) {
            self.status.held(deadline);
            *told_ms = deadline;
        }
        let Times {
            grace,
            margin,
            look,
        } = self.times;
        let until_term = remaining.saturating_sub(margin).saturating_sub(grace);
        self.clock.boot().plus(until_term.min(look))
    }

    fn tell(&mut self, state: LeaseState) {
        match state {
            LeaseState::Held { remaining } => {
                self.status.held(after_ms(self.clock, remaining));
            }
            LeaseState::Suspect { .. } => self.status.suspect(),
            LeaseState::Lost(reason) => self.status.lost(reason),
            LeaseState::Released | _ => {}
        }
    }
}
