//! The rules of a backend as one pure function. It reads no clock, draws no randomness and cannot
//! fail: every other backend is held against it.

use std::time::Duration;

use super::state::{Full, Held, LeaseKey, Missing, State};
use crate::backend::{
    Acquire, AcquireReply, Holder, Names, Release, ReleaseReply, Renew, RenewReply,
};
use crate::{BootTime, Conflict, EpochError, FencingToken, Name, Refusal};

/// What can be asked of [`State`].
#[derive(Clone, Debug)]
pub enum Command {
    /// See [`Acquire`].
    Acquire(Acquire),
    /// See [`Renew`].
    Renew(Renew),
    /// See [`Release`].
    Release(Release),
    /// Who holds a name.
    Inspect {
        /// The group of the name, if it has one.
        group: Option<Name>,
        /// The name.
        name: Name,
    },
    /// Begins a higher epoch.
    Install(u32),
    /// Offers a whole token to [`State::with_tokens`].
    Offer(u64),
}

/// What [`apply`] answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To [`Command::Acquire`].
    Acquire(AcquireReply),
    /// To [`Command::Acquire`]: nothing is granted before an epoch above `above` is installed.
    NeedsEpoch {
        /// The highest epoch that is not enough.
        above: u32,
    },
    /// To [`Command::Acquire`]: nothing is granted before a token above `above` is offered.
    NeedsToken {
        /// The highest number that is not enough.
        above: u64,
    },
    /// To [`Command::Renew`].
    Renew(RenewReply),
    /// To [`Command::Release`].
    Release(ReleaseReply),
    /// To [`Command::Inspect`].
    Inspect(Option<Holder>),
    /// To [`Command::Install`].
    Installed,
    /// To [`Command::Offer`].
    Offered,
}

/// Applies `command` at `now`, the backend's own time.
pub fn apply(state: &mut State, now: BootTime, command: Command) -> Reply {
    match command {
        Command::Acquire(ask) => match acquire(state, now, &ask) {
            Ok(reply) => Reply::Acquire(reply),
            Err(Missing::Epoch(above)) => Reply::NeedsEpoch { above },
            Err(Missing::Token(above)) => Reply::NeedsToken { above },
        },
        Command::Renew(ask) => Reply::Renew(renew(state, now, &ask)),
        Command::Release(ask) => Reply::Release(release(state, now, &ask)),
        Command::Inspect { group, name } => Reply::Inspect(inspect(state, now, &(group, name))),
        Command::Install(epoch) => {
            state.install(epoch);
            Reply::Installed
        }
        Command::Offer(number) => {
            state.offer(number);
            Reply::Offered
        }
    }
}

fn places(names: &Names) -> impl Iterator<Item = LeaseKey> + '_ {
    let group = names.group().cloned();
    let place = move |name: &Name| (group.clone(), name.clone());
    names.as_slice().iter().map(place)
}

pub(super) fn acquire(
    state: &mut State,
    now: BootTime,
    ask: &Acquire,
) -> Result<AcquireReply, Missing> {
    if let Some(reply) = acquire_again(state, now, ask) {
        return Ok(reply);
    }
    if let Some(reply) = refuse(state, now, ask) {
        return Ok(reply);
    }
    let token = state.mint(ask.floor)?;
    let cap_end = ask.cap.map(|cap| now.plus(cap));
    let mut held = Held {
        owner: ask.owner,
        token,
        born: now,
        expires: now,
        cap_end,
        meta: ask.meta.clone(),
    };
    held.live_on(now, ask.ttl);
    for place in places(&ask.names) {
        leave_queue(state, &place, ask);
        state.held.insert(place, held.clone());
    }
    Ok(granted(token, held.expires.since(now)))
}

fn granted(token: FencingToken, granted: Duration) -> AcquireReply {
    AcquireReply::Granted {
        token,
        granted,
        again: false,
        replicas: None,
    }
}

/// The owner already holds all names by one grant: the same token and a fresh ttl (B3).
fn acquire_again(state: &mut State, now: BootTime, ask: &Acquire) -> Option<AcquireReply> {
    let mut token = None;
    for place in places(&ask.names) {
        let held = state.live(&place, now)?;
        let same = *token.get_or_insert(held.token) == held.token;
        if held.owner != ask.owner || !same {
            return None;
        }
    }
    let life = live_on(state, now, &ask.names, ask.ttl);
    Some(AcquireReply::Granted {
        token: token?,
        granted: life,
        again: true,
        replicas: None,
    })
}

/// Gives all names a fresh ttl, or none if it is zero; answers the shortest life.
fn live_on(state: &mut State, now: BootTime, names: &Names, ttl: Duration) -> Duration {
    let mut shortest = Duration::MAX;
    for place in places(names) {
        if let Some(held) = state.held.get_mut(&place) {
            if !ttl.is_zero() {
                held.live_on(now, ttl);
            }
            shortest = shortest.min(held.expires.since(now));
        }
    }
    shortest
}

/// Refuses when a name is another's or an earlier waiter lives. Nothing of ours stays (B2), and
/// every conflict is listed (B9).
fn refuse(state: &mut State, now: BootTime, ask: &Acquire) -> Option<AcquireReply> {
    let mut refusal = Refusal::default();
    let mut blocked = None;
    for place in places(&ask.names) {
        if let Some(queue) = state.queues.get_mut(&place) {
            queue.bury(now);
            blocked = blocked.max(queue.blocked(ask.waiter, now));
        }
        let others = state
            .live(&place, now)
            .filter(|held| held.owner != ask.owner);
        if let Some(held) = others {
            let remaining = held.expires.since(now);
            refusal.retry_after = refusal.retry_after.max(remaining);
            let (name, token) = (place.1, held.token);
            refusal.conflicts.push(Conflict {
                name,
                remaining,
                token,
            });
        }
    }
    if refusal.conflicts.is_empty() {
        refusal.retry_after = blocked?;
    }
    for place in places(&ask.names) {
        let ours = state.held.get(&place).map(|held| held.owner) == Some(ask.owner);
        if ours {
            state.held.remove(&place);
        }
    }
    Some(match queue(state, now, ask) {
        Ok(queued) => {
            refusal.queued = queued;
            AcquireReply::Refused(refusal)
        }
        Err(Full) => AcquireReply::QueueFull,
    })
}

/// Keeps a place for a fair waiter; groups have no queue.
fn queue(state: &mut State, now: BootTime, ask: &Acquire) -> Result<bool, Full> {
    let Some(waiter) = ask.waiter.filter(|_| ask.fair) else {
        return Ok(false);
    };
    for place in places(&ask.names) {
        state.queues.entry(place).or_default().beat(waiter, now)?;
    }
    Ok(true)
}

fn leave_queue(state: &mut State, place: &LeaseKey, ask: &Acquire) {
    if let Some(waiter) = ask.waiter
        && let Some(queue) = state.queues.get_mut(place)
    {
        queue.leave(waiter);
    }
}

/// Owner and token must both be the current ones (B4); a ttl of zero only asks.
pub(super) fn renew(state: &mut State, now: BootTime, ask: &Renew) -> RenewReply {
    let mut gone = false;
    let mut taken: Option<FencingToken> = None;
    for place in places(&ask.names) {
        match state.live(&place, now) {
            None => gone = true,
            Some(held) if !is_grant(held, ask.owner, ask.token) => {
                taken = taken.max(Some(held.token));
            }
            Some(_) => {}
        }
    }
    if let Some(by) = taken {
        return RenewReply::Taken { by };
    }
    if gone {
        return RenewReply::Gone;
    }
    let granted = live_on(state, now, &ask.names, ask.ttl);
    RenewReply::Renewed { granted }
}

fn is_grant(held: &Held, owner: crate::Owner, token: FencingToken) -> bool {
    held.owner == owner && held.token.number() == token.number()
}

/// Removes the names that are the owner's by this grant and leaves all others alone (B5).
pub(super) fn release(state: &mut State, now: BootTime, ask: &Release) -> ReleaseReply {
    let mut gone = false;
    let mut taken: Option<FencingToken> = None;
    for place in places(&ask.names) {
        if let Some(waiter) = ask.waiter
            && let Some(queue) = state.queues.get_mut(&place)
        {
            queue.leave(waiter);
        }
        let Some(held) = state.live(&place, now) else {
            gone = true;
            continue;
        };
        let is_ours = match ask.token {
            Some(ours) => is_grant(held, ask.owner, ours),
            None => held.owner == ask.owner,
        };
        if is_ours {
            state.held.remove(&place);
        } else {
            taken = taken.max(Some(held.token));
        }
    }
    match (taken, gone) {
        (Some(by), _) => ReleaseReply::Taken { by },
        (None, true) => ReleaseReply::Gone,
        (None, false) => ReleaseReply::Released,
    }
}

pub(super) fn inspect(state: &State, now: BootTime, place: &LeaseKey) -> Option<Holder> {
    state.live(place, now).map(|held| held.holder(now))
}

/// Why nothing is granted when there is no source to ask.
pub(super) fn without_source(needs: &Missing) -> EpochError {
    EpochError::Unavailable(match needs {
        Missing::Epoch(above) => {
            format!("the floor asks for an epoch above {above}, and there is no epoch source")
        }
        Missing::Token(above) => {
            format!("a token above {above} is needed, and there is no token source")
        }
    })
}
