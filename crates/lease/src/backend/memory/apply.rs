//! The rules of a backend as pure functions. They read no clock, draw no randomness and cannot
//! fail: every other backend is held against them.

use std::time::Duration;

use super::state::{Full, Held, LeaseKey, NeedsEpoch, State};
use crate::backend::worst::OfName;
use crate::backend::{
    Acquire, AcquireReply, Holder, Names, Release, ReleaseReply, Renew, RenewReply, Waiter,
};
use crate::{BootTime, Conflict, FencingToken, Name, Refusal};

fn places(names: &Names) -> impl Iterator<Item = LeaseKey> + '_ {
    let group = names.group().cloned();
    let place = move |name: &Name| (group.clone(), name.clone());
    names.as_slice().iter().map(place)
}

pub(super) fn acquire(
    state: &mut State,
    now: BootTime,
    ask: &Acquire,
) -> Result<AcquireReply, NeedsEpoch> {
    let picked = pick(state, now, ask);
    let names = match &picked {
        Some(picked) => ask.names.only(|name| name == picked),
        None => ask.names.clone(),
    };
    if let Some(reply) = acquire_again(state, now, (ask, &names), picked.as_ref()) {
        return Ok(reply);
    }
    if let Some(reply) = refuse(state, now, (ask, &names)) {
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
    for place in places(&names) {
        leave_queue(state, &place, ask.waiter);
        state.held.insert(place, held.clone());
    }
    Ok(AcquireReply::Granted {
        picked,
        token,
        granted: held.expires.since(now),
        again: false,
        replicas: None,
    })
}

/// Picks the name to grant if any one is asked for: the owner's own, else the first free one.
fn pick(state: &State, now: BootTime, ask: &Acquire) -> Option<Name> {
    if !ask.names.is_any() {
        return None;
    }
    let owner_of = |place: &LeaseKey| state.live(place, now).map(|held| held.owner);
    let own = places(&ask.names).find(|place| owner_of(place) == Some(ask.owner));
    let free = || places(&ask.names).find(|place| owner_of(place).is_none());
    own.or_else(free).map(|(_, name)| name)
}

/// Renews if the owner already holds all names by one grant: same token, fresh ttl (B3).
fn acquire_again(
    state: &mut State,
    now: BootTime,
    (ask, names): (&Acquire, &Names),
    picked: Option<&Name>,
) -> Option<AcquireReply> {
    let mut token = None;
    for place in places(names) {
        let held = state.live(&place, now)?;
        let same = *token.get_or_insert(held.token) == held.token;
        if held.owner != ask.owner || !same {
            return None;
        }
    }
    let life = live_on(state, now, names, ask.ttl);
    Some(AcquireReply::Granted {
        picked: picked.cloned(),
        token: token?,
        granted: life,
        again: true,
        replicas: None,
    })
}

/// Gives all names a fresh ttl, and returns the shortest life.
fn live_on(state: &mut State, now: BootTime, names: &Names, ttl: Duration) -> Duration {
    let mut shortest = Duration::MAX;
    for place in places(names) {
        if let Some(held) = state.held.get_mut(&place) {
            held.live_on(now, ttl);
            shortest = shortest.min(held.expires.since(now));
        }
    }
    shortest
}

/// Refuses if another owner holds a name or an earlier waiter is alive; returns `None` if not. A
/// refused owner keeps none of the names (B2), and every conflict is listed (B9).
fn refuse(
    state: &mut State,
    now: BootTime,
    (ask, names): (&Acquire, &Names),
) -> Option<AcquireReply> {
    let mut refusal = Refusal::default();
    let mut blocked = None;
    for place in places(names) {
        if let Some(queue) = state.queues.get_mut(&place) {
            queue.bury(now);
            blocked = blocked.max(queue.blocked(ask.waiter, now));
        }
        let live = state.live(&place, now);
        if let Some(held) = live.filter(|held| held.owner != ask.owner) {
            let remaining = held.expires.since(now);
            refusal.retry_after = refusal.retry_after.max(remaining);
            let conflict = Conflict::new(place.1, remaining, held.token);
            refusal.conflicts.push(conflict);
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

/// Keeps a place for a fair waiter, and returns whether it did; groups have no queue.
fn queue(state: &mut State, now: BootTime, ask: &Acquire) -> Result<bool, Full> {
    let Some(waiter) = ask.waiter.filter(|_| ask.fair) else {
        return Ok(false);
    };
    for place in places(&ask.names) {
        state.queues.entry(place).or_default().beat(waiter, now)?;
    }
    Ok(true)
}

fn leave_queue(state: &mut State, place: &LeaseKey, waiter: Option<Waiter>) {
    if let Some(waiter) = waiter
        && let Some(queue) = state.queues.get_mut(place)
    {
        queue.leave(waiter);
    }
}

/// Renews if owner and token are both the current ones (B4); a ttl of zero only asks.
pub(super) fn renew(state: &mut State, now: BootTime, ask: &Renew) -> RenewReply {
    let of = |place| match state.live(&place, now) {
        None => OfName::Gone,
        Some(held) if !is_grant(held, ask.owner, ask.token) => OfName::Taken(held.token),
        Some(_) => OfName::Ours(Duration::MAX),
    };
    match OfName::worst(places(&ask.names).map(of)) {
        OfName::Ours(_) => RenewReply::Renewed {
            granted: live_on(state, now, &ask.names, ask.ttl),
        },
        worst @ (OfName::Capped | OfName::Gone | OfName::Taken(_)) => worst.renewed(),
    }
}

fn is_grant(held: &Held, owner: crate::Owner, token: FencingToken) -> bool {
    held.owner == owner && held.token.number() == token.number()
}

/// Releases the names that are the owner's by this grant, and leaves all others alone (B5).
pub(super) fn release(state: &mut State, now: BootTime, ask: &Release) -> ReleaseReply {
    let names = places(&ask.names).map(|place| release_one(state, now, (ask, place)));
    OfName::worst(names).released()
}

fn release_one(state: &mut State, now: BootTime, (ask, place): (&Release, LeaseKey)) -> OfName {
    leave_queue(state, &place, ask.waiter);
    let Some(held) = state.live(&place, now) else {
        return OfName::Gone;
    };
    let is_ours = match ask.token {
        Some(ours) => is_grant(held, ask.owner, ours),
        None => held.owner == ask.owner,
    };
    if !is_ours {
        return OfName::Taken(held.token);
    }
    state.held.remove(&place);
    OfName::Ours(Duration::ZERO)
}

pub(super) fn inspect(state: &State, now: BootTime, place: &LeaseKey) -> Option<Holder> {
    state.live(place, now).map(|held| held.holder(now))
}
