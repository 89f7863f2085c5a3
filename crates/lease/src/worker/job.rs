//! A release that waits to be sent, or to be sent again.

use std::sync::Mutex;
use std::time::Duration;

use crate::backend::Release;
use crate::inbox::Settle;
use crate::locks::lock;
use crate::{BootTime, FencingToken};

/// One release on its way.
pub(crate) struct ReleaseJob {
    pub(super) release: Release,
    pub(super) why: Why,
    /// The instant from which the ttl has ended the grant.
    pub(super) give_up: BootTime,
    pub(super) failures: u32,
    /// Send it once more after this span, by owner alone: a command may still be in a buffer.
    pub(super) again: Option<Duration>,
    pub(super) settle: Option<Settle>,
}

/// What follows one try of a release.
pub(super) enum Next {
    Done,
    /// Try again at this time.
    At(BootTime, ReleaseJob),
    /// Give up: the ttl ends the grant.
    LeftToTtl,
}

/// Why the grant is released, for notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Guard {
        token: FencingToken,
        /// `None` for a holder elsewhere: since when it holds the lease is known there alone.
        born: Option<BootTime>,
    },
    Lost,
    Orphan,
}

impl ReleaseJob {
    /// Builds a release of what an acquire may have left.
    pub(super) fn orphan(release: Release, give_up: BootTime, again: Option<Duration>) -> Self {
        Self::of(release, Why::Orphan, give_up, again)
    }

    pub(super) fn of(
        release: Release,
        why: Why,
        give_up: BootTime,
        again: Option<Duration>,
    ) -> Self {
        Self {
            release,
            why,
            give_up,
            failures: 0,
            again,
            settle: None,
        }
    }

    /// Sets the channel to the caller that waits for the outcome.
    pub(super) fn settling(mut self, settle: Option<Settle>) -> Self {
        self.settle = settle;
        self
    }

    /// Tells whether it waits because the backend did not answer, and not for the second delete.
    pub(super) fn is_retry(&self) -> bool {
        self.failures > 0
    }
}

/// A release that was sent outside the loop. The side that takes the job decides what follows: the
/// answer, or the lease thread when none came in time, or when the call was dropped.
pub(super) struct Sent(Mutex<Option<ReleaseJob>>);

impl Sent {
    pub(super) fn of(job: ReleaseJob) -> Self {
        Self(Mutex::new(Some(job)))
    }

    pub(super) fn take(&self) -> Option<ReleaseJob> {
        lock(&self.0).take()
    }

    /// Takes it in place of its sender, which has had no answer: it may have run.
    pub(super) fn take_over(&self) -> Option<ReleaseJob> {
        let mut job = self.take()?;
        job.failures = job.failures.saturating_add(1);
        Some(job)
    }
}
