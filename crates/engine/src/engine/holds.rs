//! Holds that exist: change, extend, release, revoke, and reading them.

use soldonce_core::{
    Authority, Change, Command, Fence, Hold, HoldId, Holder, HolderName, OnHold, Rejection, Span,
    Text,
};

use super::{Engine, EngineError, ListPage, NamedUnits, Reply};
use crate::caller::{Call, HoldSecret};
use crate::limits::LIST_MAX;
use crate::reply::{self, StoredReply};

/// A request to add units to a hold and drop units from it.
#[derive(Clone, Debug, Default)]
pub struct ChangeAsk<'a> {
    /// Units to take.
    pub add: NamedUnits<'a>,
    /// Units to give up.
    pub drop: NamedUnits<'a>,
    /// The fence the caller knows.
    pub fence: Option<Fence>,
}

/// A request to push a hold's end later.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtendAsk {
    /// From now, so long; none is the policy's.
    pub ttl: Option<Span>,
    /// The fence the caller knows.
    pub fence: Option<Fence>,
}

impl Engine {
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

    /// Pushes a hold's end later, never beyond its cap.
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
        let ttl_max = match &call.caller {
            crate::Caller::Shopper(_) => {
                let event = self.event_of(self.own_hold(call, id).await?.event)?;
                Some(event.policy.hold_ttl)
            }
            crate::Caller::Key { .. } => None,
        };
        let command = Command::Extend {
            on,
            ttl: ask.ttl,
            ttl_max,
        };
        let done = self.submit(call, command).await;
        let outcome = match &done {
            Ok(_) => "ok",
            Err(rejection) => rejection.code(),
        };
        let label = crate::metrics::OutcomeLabel { outcome };
        self.parts
            .metrics
            .holds_extended
            .get_or_create(&label)
            .inc();
        self.reply(done?)
    }

    /// Gives a hold up. Repeating gives the same answer.
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

    /// A hold as it is now: one that is over says so, swept or not.
    ///
    /// # Errors
    /// `HoldNotFound`, also for a foreign one.
    pub async fn hold_now(&self, call: &Call, id: HoldId) -> Result<StoredReply, EngineError> {
        let hold = self.own_hold(call, id).await?;
        let event = self.event_of(hold.event)?;
        Ok(reply::hold_now(&event, &hold, self.now()))
    }

    /// The caller's live holds of one holder, newest first, a page at a time.
    ///
    /// # Errors
    /// `Invalid` when a shopper names a holder or a key does not.
    pub async fn holds_of(
        &self,
        call: &Call,
        holder: Option<HolderName>,
        after: Option<HoldId>,
    ) -> Result<ListPage<HoldId>, EngineError> {
        let holder = Holder {
            caller: call.caller.id(),
            name: call.caller.holder(holder)?,
        };
        let holds = self.parts.ledger.holds_of(holder, after, LIST_MAX).await?;
        let now = self.now();
        let mut found = Vec::with_capacity(holds.len());
        for hold in holds.iter().filter(|hold| hold.is_live(now)) {
            found.push(reply::hold_now(&*self.event_of(hold.event)?, hold, now));
        }
        Ok(ListPage {
            found,
            next: holds.get(LIST_MAX - 1).map(|hold| hold.id),
            seq: None,
        })
    }

    /// Which hold, by what right: a secret that is sent must be right, also for staff.
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

    /// A hold that the caller may see.
    async fn own_hold(&self, call: &Call, id: HoldId) -> Result<Hold, EngineError> {
        let by = self.authority(call, id)?;
        let hold = self
            .parts
            .ledger
            .hold(id)
            .await?
            .ok_or(Rejection::HoldNotFound)?;
        match by {
            Authority::Caller(caller) if caller != hold.holder.caller => {
                Err(Rejection::HoldNotFound.into())
            }
            Authority::Caller(_) | Authority::Staff | Authority::Secret => Ok(hold),
        }
    }
}
