//! The live grants and their next instants: to renew, to become suspect, to be lost. `lease.md` 3,
//! LT6 to LT8. Plain data without I/O: the loop acts on it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Renew, RenewReply};
use crate::grant::{Confirmed, Grant};
use crate::limits::BATCH_MAX;
use crate::{BackendError, BootTime, LeaseState, LostReason, Owner, timing};

/// Grants by owner, in the order of their next instant. A grant is removed when it has ended and
/// not before: a grant that is in here when a panic ends the thread is reported as lost.
#[derive(Default)]
pub(super) struct Live {
    grants: HashMap<Owner, Watched>,
    instants: BTreeSet<(BootTime, [u8; 16])>,
}

struct Watched {
    grant: Arc<Grant>,
    /// `None` while a renewal is under way, and for grants renewed by hand.
    renew_at: Option<BootTime>,
    /// Whether the holder has been notified that a renewal is overdue.
    suspect: bool,
    next: BootTime,
}

impl Watched {
    fn planned(&self) -> BootTime {
        let deadline = self.grant.deadline();
        let mut next = deadline;
        if !self.suspect {
            next = next.min(deadline.minus(self.grant.suspect_below()));
        }
        self.renew_at.map_or(next, |at| next.min(at))
    }
}

/// The grants to act on at one instant.
#[derive(Default)]
pub(super) struct Due {
    /// To be renewed now, in batches.
    pub(super) renew: Vec<Vec<Arc<Grant>>>,
    /// Newly overdue for renewal.
    pub(super) suspect: Vec<Arc<Grant>>,
    /// Past their deadline, and to be removed.
    pub(super) lost: Vec<Arc<Grant>>,
}

/// The effect of an answer to a renewal on its grant.
pub(super) enum Renewed {
    /// It lives on; `recovered` if it had been suspect.
    Live {
        recovered: bool,
    },
    /// It had ended here before the answer came: the grant at the backend is to be released.
    TooLate,
    Lost(LostReason),
    Failed(BackendError),
}

impl Live {
    pub(super) fn len(&self) -> usize {
        self.grants.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.grants.is_empty()
    }

    /// Returns the next instant at which [`Live::due`] finds something.
    pub(super) fn next(&self) -> Option<BootTime> {
        self.instants.first().map(|(at, _)| *at)
    }

    /// Adds a grant, and returns its next instant.
    pub(super) fn insert(&mut self, grant: Arc<Grant>) -> BootTime {
        let owner = grant.terms.owner;
        let mut watched = Watched {
            next: grant.deadline(),
            renew_at: renewal_of(&grant),
            grant,
            suspect: false,
        };
        let next = watched.planned();
        watched.next = next;
        self.instants.insert((next, owner.expose()));
        if let Some(before) = self.grants.insert(owner, watched) {
            // The same ticket was resumed again. The guard before would be renewed no more, and its drop would release.
            before.grant.abandon();
            self.instants.remove(&(before.next, owner.expose()));
            self.instants.insert((next, owner.expose()));
        }
        next
    }

    /// Removes the grant, but not another grant of the same owner. Returns false if there is another.
    pub(super) fn remove_this(&mut self, grant: &Grant) -> bool {
        let owner = grant.terms.owner;
        if self.has_another(grant) {
            return false;
        }
        if let Some(watched) = self.grants.remove(&owner) {
            self.instants.remove(&(watched.next, owner.expose()));
        }
        true
    }

    /// Tells whether another grant of the same owner is in here.
    pub(super) fn has_another(&self, grant: &Grant) -> bool {
        let watched = self.grants.get(&grant.terms.owner);
        watched.is_some_and(|watched| Arc::as_ptr(&watched.grant) != std::ptr::from_ref(grant))
    }

    /// Returns the grant with the earliest next instant.
    pub(super) fn first(&self) -> Option<Arc<Grant>> {
        let (_, bits) = self.instants.first()?;
        let watched = self.grants.get(&Owner::from_bits(*bits))?;
        Some(watched.grant.clone())
    }

    pub(super) fn drain(&mut self) -> Vec<Arc<Grant>> {
        self.instants.clear();
        let grants = self.grants.drain();
        grants.map(|(_, watched)| watched.grant).collect()
    }

    /// Moves a grant to its next instant.
    fn plan(&mut self, owner: Owner) {
        let Some(watched) = self.grants.get_mut(&owner) else {
            return;
        };
        let next = watched.planned();
        let before = std::mem::replace(&mut watched.next, next);
        self.instants.remove(&(before, owner.expose()));
        self.instants.insert((next, owner.expose()));
    }

    /// Collects what is due at `now`. Renewals due within 50 ms are batched with one that is due.
    pub(super) fn due(&mut self, now: BootTime) -> Due {
        let mut due = Due::default();
        if self.next().is_none_or(|next| next > now) {
            return due;
        }
        let soon = now.plus(timing::BATCH_SPAN);
        let reached = self.instants.range(..=(soon, [u8::MAX; 16]));
        let reached = reached.map(|(at, bits)| (*at, Owner::from_bits(*bits)));
        let mut renew = Vec::new();
        for (at, owner) in reached.collect::<Vec<_>>() {
            self.reached((at, owner), now, &mut due, &mut renew);
        }
        batches(renew, &mut due);
        due
    }

    fn reached(
        &mut self,
        (at, owner): (BootTime, Owner),
        now: BootTime,
        due: &mut Due,
        renew: &mut Vec<Arc<Grant>>,
    ) {
        let Some(watched) = self.grants.get_mut(&owner) else {
            return;
        };
        if now >= watched.grant.deadline() {
            due.lost.push(watched.grant.clone());
            return;
        }
        let soon = now.plus(timing::BATCH_SPAN);
        if watched.renew_at.is_some_and(|renew_at| renew_at <= soon) {
            watched.renew_at = None;
            renew.push(watched.grant.clone());
        }
        let overdue = watched.grant.remaining() < watched.grant.suspect_below();
        if at <= now && !watched.suspect && overdue {
            watched.suspect = true;
            due.suspect.push(watched.grant.clone());
        }
        self.plan(owner);
    }

    /// Collects, for a renewal at once, grants whose wall clock ran ahead of the boot clock (LT7).
    pub(super) fn drifted(&mut self) -> Due {
        let mut due = Due::default();
        let mut renew = Vec::new();
        let mut moved = Vec::new();
        for (owner, watched) in &mut self.grants {
            if watched.suspect || !watched.grant.has_drifted() {
                continue;
            }
            watched.suspect = true;
            due.suspect.push(watched.grant.clone());
            watched.renew_at = None;
            renew.push(watched.grant.clone());
            moved.push(*owner);
        }
        for owner in moved {
            self.plan(owner);
        }
        batches(renew, &mut due);
        due
    }

    /// Applies the answer to a renewal; `try_again` is the pause after a failure.
    pub(super) fn answered(
        &mut self,
        grant: &Grant,
        mut confirmed: Confirmed,
        reply: RenewReply,
        try_again: Duration,
    ) -> Renewed {
        let owner = grant.terms.owner;
        let lost = match reply {
            RenewReply::Renewed { granted } => {
                confirmed.granted = granted;
                return self.confirmed(grant, confirmed);
            }
            RenewReply::Failed(error) => {
                let again = grant.now().plus(try_again);
                if let Some(watched) = self.grants.get_mut(&owner) {
                    watched.renew_at = (!grant.terms.manual).then_some(again);
                }
                self.plan(owner);
                return Renewed::Failed(error);
            }
            RenewReply::Gone => LostReason::Gone,
            RenewReply::Taken { by } => LostReason::Taken { by },
            RenewReply::Capped => LostReason::CapReached,
        };
        Renewed::Lost(lost)
    }

    fn confirmed(&mut self, grant: &Grant, confirmed: Confirmed) -> Renewed {
        if !grant.confirm(confirmed) {
            return Renewed::TooLate;
        }
        let owner = grant.terms.owner;
        let mut recovered = false;
        if let Some(watched) = self.grants.get_mut(&owner) {
            let held = matches!(grant.state(), LeaseState::Held { .. });
            recovered = watched.suspect && held;
            watched.suspect = watched.suspect && !held;
            // A look changes no life, so it does not put off the renewal either.
            if !confirmed.asked.is_zero() {
                watched.renew_at = renewal_of(&watched.grant);
            }
        }
        self.plan(owner);
        Renewed::Live { recovered }
    }
}

fn renewal_of(grant: &Grant) -> Option<BootTime> {
    (!grant.terms.manual).then(|| timing::renew_at(grant.sent(), grant.ttl()))
}

/// Splits into batches of like ttl, so that a short lease sets no short time-out for a long one.
fn batches(mut renew: Vec<Arc<Grant>>, due: &mut Due) {
    renew.sort_unstable_by_key(|grant| grant.ttl());
    let batches = renew.chunks(BATCH_MAX).map(<[_]>::to_vec);
    due.renew.extend(batches);
}

pub(super) fn message(grant: &Grant, ttl: Duration) -> Renew {
    Renew {
        names: grant.terms.names.clone(),
        owner: grant.terms.owner,
        token: grant.terms.token,
        ttl,
    }
}
