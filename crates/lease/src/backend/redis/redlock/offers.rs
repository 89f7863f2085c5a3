//! Tokens for Redlock: minted before the vote, and offered again when the same owner asks again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::backend::{Acquire, Names};
use crate::locks::lock;
use crate::{
    BootTime, Clock, FenceError, FenceKind, FenceSource, FencingToken, Namespace, Owner, token,
};

/// With more remembered offers than this, those that have ended are removed.
const SWEEP_ABOVE: usize = 1_024;

pub(super) struct TokenOffers {
    source: Option<Arc<dyn FenceSource>>,
    namespace: Namespace,
    clock: Arc<dyn Clock>,
    kept: Mutex<Offered>,
}

#[derive(Default)]
struct Offered {
    /// The offer to each owner and names: nodes that have the key and nodes that do not must get
    /// the same token when the same owner asks again.
    offers: HashMap<(Owner, Names), Offer>,
    /// The highest token seen.
    seen: u64,
}

#[derive(Clone, Copy)]
struct Offer {
    token: u64,
    /// Granted, not only offered: asking again must get this one, even below the floor.
    held: bool,
    /// After this instant it belongs to no lease, and a new grant needs a new token.
    until: BootTime,
}

impl TokenOffers {
    pub(super) fn new(
        source: Option<Arc<dyn FenceSource>>,
        namespace: Namespace,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            source,
            namespace,
            clock,
            kept: Mutex::default(),
        }
    }

    /// Returns the token to offer for `command`: the one that its owner was offered last, or a new
    /// one above `above`.
    pub(super) async fn offer(
        &self,
        command: &Acquire,
        above: u64,
        now: BootTime,
    ) -> Result<u64, FenceError> {
        let key = (command.owner, command.names.clone());
        if let Some(offer) = lock(&self.kept).offers.get(&key)
            && offer.until > now
            && (offer.held || offer.token > above)
        {
            return Ok(offer.token);
        }
        let token = self.mint(above).await?;
        let mut kept = lock(&self.kept);
        if kept.offers.len() > SWEEP_ABOVE {
            kept.offers.retain(|_, offer| offer.until > now);
        }
        let offer = Offer {
            token,
            held: false,
            until: now.plus(command.ttl),
        };
        kept.offers.insert(key, offer);
        Ok(token)
    }

    async fn mint(&self, above: u64) -> Result<u64, FenceError> {
        if let Some(source) = &self.source {
            let namespace = self.namespace.as_str();
            return source.next(FenceKind::Token, namespace, above).await;
        }
        // Two processes may mint the same: no node grants it twice, and the loser mints again.
        let now = token::of_clock(self.clock.wall_ms());
        let mut kept = lock(&self.kept);
        kept.seen = kept.seen.max(above).max(now).saturating_add(1);
        Ok(kept.seen)
    }

    /// Notes a token: the next one without a source is above it.
    pub(super) fn saw(&self, token: FencingToken) {
        let mut kept = lock(&self.kept);
        kept.seen = kept.seen.max(token.number());
    }

    /// Notes that the grant lives until `until`, if its token was offered here.
    pub(super) fn held(&self, owner: Owner, names: &Names, (token, until): (u64, BootTime)) {
        let mut kept = lock(&self.kept);
        if let Some(offer) = kept.offers.get_mut(&(owner, names.clone()))
            && offer.token == token
        {
            // Lives only grow, and an older answer may come last.
            offer.until = if offer.held {
                offer.until.max(until)
            } else {
                until
            };
            offer.held = true;
        }
    }

    /// Tells whether the owner has a live grant of the names, as far as this process knows.
    pub(super) fn is_held(&self, owner: Owner, names: &Names, now: BootTime) -> bool {
        let kept = lock(&self.kept);
        let offer = kept.offers.get(&(owner, names.clone()));
        offer.is_some_and(|offer| offer.held && offer.until > now)
    }

    /// Removes the offers to an owner that releases these names.
    pub(super) fn forget(&self, owner: Owner, names: &Names) {
        let mut kept = lock(&self.kept);
        kept.offers.remove(&(owner, names.clone()));
        if names.is_any() {
            for name in names.as_slice() {
                let one = names.only(|one| one == name);
                kept.offers.remove(&(owner, one));
            }
        }
    }
}
