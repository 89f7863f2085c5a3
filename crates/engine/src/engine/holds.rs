//! Holds: make, change, extend, release, revoke, and read them. A new one passes the shields first.

use soldonce_core::{
    Authority, Change, Command, EventId, Fence, Hold, HoldId, Holder, HolderName, NewHold, OnHold,
    Rejection, RequestedTerms, Selection, Span, Text, Timestamp, Together, UnitNo, Wish,
};

use super::names::resolve_wish;
use super::shields::ShieldQuery;
use super::{Engine, EngineError, ListPage, NamedUnits, Reply, WishAsk};
use crate::caller::{Call, HoldSecret};
use crate::limits::LIST_MAX;
use crate::live::LiveEvent;
use crate::reply::{self, ReplyKind, StoredReply};

/// A request to hold units.
#[derive(Clone, Debug)]
pub struct HoldAsk<'a> {
    /// The holder; shoppers leave it out.
    pub holder: Option<HolderName>,
    pub wish: WishAsk<'a>,
    /// The time to live; `None` is the policy's.
    pub ttl: Option<Span>,
}

impl HoldAsk<'_> {
    /// Asks for the best `quantity` free units of any category, neighbours if there are some, for the
    /// time of the policy.
    pub const fn best(quantity: u32) -> Self {
        Self {
            holder: None,
            wish: WishAsk::Best {
                quantity,
                category: None,
                together: Together::Preferred,
            },
            ttl: None,
        }
    }
}

/// A request to add units to a hold and drop units from it.
#[derive(Clone, Debug, Default)]
pub struct ChangeAsk<'a> {
    pub add: NamedUnits<'a>,
    pub drop: NamedUnits<'a>,
    pub fence: Option<Fence>,
}

/// A request to extend a hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtendAsk {
    /// The time to live from now; `None` is the policy's.
    pub ttl: Option<Span>,
    pub fence: Option<Fence>,
}

impl Engine {
    /// Creates a hold of units of an event.
    ///
    /// # Errors
    /// Every rejection of model.md 3; `Overloaded`, `ReadOnly`.
    ///
    /// # Cancel safety
    /// Dropped, the hold may have been made: ask again with the same key, or for the same seats.
    pub async fn hold(
        &self,
        call: &Call,
        event: &EventId,
        ask: HoldAsk<'_>,
    ) -> Result<Reply, EngineError> {
        let began = self.parts.world.clock.boot();
        let done = self.try_hold(call, event, ask).await;
        let outcome = match &done {
            Ok(reply) if reply.replayed => "replayed",
            Ok(reply) if reply.stored.kind == ReplyKind::OwnHold => "own",
            Ok(_) => "ok",
            Err(EngineError::Rejected(rejection)) => rejection.code(),
            Err(EngineError::Read(_)) => "unreadable",
            Err(EngineError::Provider(_)) => "provider",
        };
        let took = self.parts.world.clock.boot().since(began);
        self.parts.metrics.hold_asked(outcome, took);
        done
    }

    async fn try_hold(
        &self,
        call: &Call,
        event: &EventId,
        ask: HoldAsk<'_>,
    ) -> Result<Reply, EngineError> {
        let live = self.live(event).await?;
        let event = live.event();
        let holder = call.caller.holder(ask.holder)?;
        let wish = resolve_wish(&event, &ask.wish)?;
        let ttl_max = call.caller.ttl_max();
        let terms = RequestedTerms {
            count: wish.count(),
            ttl: ask.ttl,
            ttl_max,
        };
        let (mut pass, now) = (None, self.now());
        // A keyed request may repeat one that succeeded. A single-server ledger answers that from memory, so the
        // shields are skipped; on a shared ledger the own shield refuses first (0091).
        let is_keyed = call.key.is_some();
        if let Wish::Named(selection) = &wish
            && (!is_keyed || self.parts.ledger.is_shared())
            && self.may_ask_shields((&live, &holder), selection, (now, terms))?
        {
            let query = ShieldQuery {
                live: &live,
                event: &event,
                holder: &holder,
                selection,
                now,
                is_keyed,
            };
            self.pass_own_shield(query)?;
            if !is_keyed {
                pass = self.pass_shared_shield(query).await?;
            }
        }
        let hold = self.parts.ids.hold();
        let (event, ttl) = (event.no, ask.ttl);
        let new = NewHold {
            event,
            hold,
            holder,
            wish,
            ttl,
            ttl_max,
        };
        let done = self.submit(call, Command::Hold(new)).await;
        self.note_outcome(&live, pass, &done);
        self.reply(done?)
    }

    /// Refuses a request that the terms of the event forbid, if this server alone decides; returns
    /// whether the shields are to be queried. Other servers may have changed the terms a moment
    /// ago, and the seats may be the holder's own, who gets them back: then the ledger decides.
    fn may_ask_shields(
        &self,
        (live, holder): (&LiveEvent, &Holder),
        wanted: &Selection,
        (now, terms): (Timestamp, RequestedTerms),
    ) -> Result<bool, Rejection> {
        let is_own = |unit: &UnitNo| live.shield.may_be_held_by(*unit, holder);
        match live.event().require_terms(now, terms) {
            Ok(_) => Ok(true),
            Err(_) if self.parts.ledger.is_shared() => Ok(false),
            Err(_) if wanted.seats().first().is_some_and(is_own) => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }

    /// Adds units to a hold and drops units from it, all or nothing.
    ///
    /// # Errors
    /// Every rejection of model.md 4 for *change*.
    ///
    /// # Cancel safety
    /// Dropped, the change may have been made: ask for the hold.
    pub async fn change(
        &self,
        call: &Call,
        id: HoldId,
        ask: ChangeAsk<'_>,
    ) -> Result<Reply, EngineError> {
        let on = self.on_hold(call, id, ask.fence)?;
        let event = self.event_of(self.own_hold(call, id).await?.event)?;
        let add = ask.add.wanted(&event.chart)?;
        let (drop, drop_places) = ask.drop.owned(&event.chart)?;
        let change = Change {
            on,
            add,
            drop,
            drop_places,
        };
        self.reply(self.submit(call, Command::Change(Box::new(change))).await?)
    }

    /// Extends a hold, never beyond its cap.
    ///
    /// # Errors
    /// Every rejection of model.md 4 for *extend*.
    ///
    /// # Cancel safety
    /// Dropped, the extension may have been made: ask for the hold, or repeat.
    pub async fn extend(
        &self,
        call: &Call,
        id: HoldId,
        ask: ExtendAsk,
    ) -> Result<Reply, EngineError> {
        let on = self.on_hold(call, id, ask.fence)?;
        let command = Command::Extend {
            on,
            ttl: ask.ttl,
            ttl_max: call.caller.ttl_max(),
        };
        let done = self.submit(call, command).await;
        self.parts.metrics.extended(done.as_ref());
        self.reply(done?)
    }

    /// Releases a hold. Repeating gives the same answer.
    ///
    /// # Errors
    /// `HoldNotFound`, the terminal state that was reached, `HoldExpired`, `StaleFence`.
    ///
    /// # Cancel safety
    /// Dropped, the hold may have been released: repeat.
    pub async fn release(
        &self,
        call: &Call,
        id: HoldId,
        fence: Option<Fence>,
    ) -> Result<Reply, EngineError> {
        let on = self.on_hold(call, id, fence)?;
        self.reply(self.submit(call, Command::Release { on }).await?)
    }

    /// Ends a hold by staff.
    ///
    /// # Errors
    /// As [`Engine::release`].
    ///
    /// # Cancel safety
    /// Dropped, the hold may have been revoked: repeat.
    pub async fn revoke(
        &self,
        call: &Call,
        hold: HoldId,
        reason: Text,
    ) -> Result<Reply, EngineError> {
        self.reply(self.submit(call, Command::Revoke { hold, reason }).await?)
    }

    /// Returns a hold in its present state: one that is over says so, swept or not.
    ///
    /// # Errors
    /// `HoldNotFound`, also for a foreign one.
    pub async fn hold_now(&self, call: &Call, id: HoldId) -> Result<StoredReply, EngineError> {
        let hold = self.own_hold(call, id).await?;
        let event = self.event_of(hold.event)?;
        Ok(reply::hold_now(&event, &hold, self.now()))
    }

    /// Lists the caller's live holds of one holder, newest first, a page at a time.
    ///
    /// # Errors
    /// `Invalid` when a shopper names a holder or a key does not.
    pub async fn holds_of(
        &self,
        call: &Call,
        holder: Option<HolderName>,
        after: Option<HoldId>,
    ) -> Result<ListPage<HoldId>, EngineError> {
        let holder = call.caller.holder(holder)?;
        let holds = self
            .parts
            .ledger
            .holds_of(holder, (after, LIST_MAX))
            .await?;
        let now = self.now();
        let mut found = Vec::with_capacity(holds.len());
        for hold in holds.iter().filter(|hold| hold.is_live(now)) {
            let event = self.event_of(hold.event)?;
            if event.cancelled().is_none() {
                found.push(reply::hold_now(&event, hold, now));
            }
        }
        Ok(ListPage {
            found,
            next: holds.get(LIST_MAX - 1).map(|hold| hold.id),
            seq: None,
        })
    }

    /// Builds the target of a command: which hold, and by what right. A secret that is sent must be
    /// right, also for staff.
    pub(super) fn on_hold(
        &self,
        call: &Call,
        hold: HoldId,
        fence: Option<Fence>,
    ) -> Result<OnHold, Rejection> {
        Ok(OnHold {
            hold,
            by: self.authority(call, hold)?,
            fence,
        })
    }

    pub(super) fn authority(&self, call: &Call, hold: HoldId) -> Result<Authority, Rejection> {
        match &call.secret {
            Some(secret) if !self.opens(secret, hold) => Err(Rejection::HoldNotFound),
            Some(_) => Ok(call.caller.authority_by_secret()),
            None => Ok(call.caller.authority()),
        }
    }

    pub(super) fn opens(&self, secret: &HoldSecret, hold: HoldId) -> bool {
        self.parts.secrets.opens_hold(hold, &secret.0)
    }

    /// Returns a hold that the caller may see.
    async fn own_hold(&self, call: &Call, id: HoldId) -> Result<Hold, EngineError> {
        let by = self.authority(call, id)?;
        let hold = self.parts.ledger.hold(id).await?;
        let hold = hold.filter(|hold| by.may_act_for(&hold.holder));
        Ok(hold.ok_or(Rejection::HoldNotFound)?)
    }
}
