//! Hold: from a request to the ledger, past the shields.

use soldonce_core::{
    Command, Event, HoldTermsAsked, Holder, HolderName, NewHold, Rejection, Span, Timestamp,
    Together, Wish,
};

use super::shields::ShieldQuery;
use super::{Engine, EngineError, NamedUnits, Reply};
use crate::caller::Call;
use crate::metrics::OutcomeLabel;
use crate::reply;

/// Units that are wanted.
#[derive(Clone, Debug)]
pub enum WishAsk<'a> {
    /// These.
    Named(NamedUnits<'a>),
    /// The best free ones.
    Best {
        /// How many.
        quantity: u32,
        /// Of which price class; none is any.
        category: Option<&'a str>,
        /// Whether they must be neighbours.
        together: Together,
    },
}

/// A request to hold units.
#[derive(Clone, Debug)]
pub struct HoldAsk<'a> {
    /// For whom; shoppers leave it out.
    pub holder: Option<HolderName>,
    /// Which units.
    pub wish: WishAsk<'a>,
    /// For how long; none is the policy's.
    pub ttl: Option<Span>,
}

impl Engine {
    /// Holds units of an event.
    ///
    /// # Errors
    /// Every rejection of model.md 3; `Overloaded`, `ReadOnly`.
    ///
    /// # Cancel safety
    /// Dropped, the hold may have been made: ask again with the same key, or for the same seats.
    pub async fn hold(
        &self,
        call: &Call,
        event: &soldonce_core::EventId,
        ask: HoldAsk<'_>,
    ) -> Result<Reply, EngineError> {
        let began = self.parts.world.clock.boot();
        let done = self.try_hold(call, event, ask).await;
        let outcome = match &done {
            Ok(reply) if reply.replayed => "replayed",
            Ok(reply) if reply.stored.kind == reply::ReplyKind::OwnHold => "own",
            Ok(_) => "ok",
            Err(EngineError::Rejected(rejection)) => rejection.code(),
            Err(EngineError::Read(_)) => "unreadable",
            Err(EngineError::Provider(_)) => "provider",
        };
        let label = OutcomeLabel { outcome };
        self.parts.metrics.hold_requests.get_or_create(&label).inc();
        let took = self.parts.world.clock.boot().since(began);
        self.parts
            .metrics
            .hold_seconds
            .get_or_create(&label)
            .observe(took.as_secs_f64());
        done
    }

    async fn try_hold(
        &self,
        call: &Call,
        event: &soldonce_core::EventId,
        ask: HoldAsk<'_>,
    ) -> Result<Reply, EngineError> {
        let live = self.live(event).await?;
        let event = live.event();
        let holder = Holder {
            caller: call.caller.id(),
            name: call.caller.holder(ask.holder)?,
        };
        let wish = resolve_wish(&event, &ask.wish)?;
        let ttl_max = call.caller.ttl_max(event.policy.hold_ttl);
        let asked = HoldTermsAsked {
            count: wish.count(),
            ttl: ask.ttl,
            ttl_max,
        };
        let (mut pass, now) = (None, self.now());
        // A key may stand for a hold that was made. Alone, the ledger knows its answer at no cost; of a
        // shared one it is read, so what is known to be another's is refused first (0091).
        let is_keyed = call.key.is_some();
        if let Wish::Named(selection) = &wish
            && (!is_keyed || self.parts.ledger.is_shared())
            && self.may_ask_shields(&event, now, asked)?
        {
            let asked = ShieldQuery {
                live: &live,
                event: &event,
                holder: &holder,
                selection,
                now,
                is_keyed,
            };
            self.pass_own_shield(asked)?;
            if !is_keyed {
                pass = self.pass_shared_shield(asked).await?;
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
        self.tell_outcome(&live, pass, &done);
        self.reply(done?)
    }
}

impl Engine {
    /// Refuses a request that the terms of the event forbid, if this server alone decides; returns
    /// whether shields are to be asked. Other servers may have changed the terms a moment ago: then
    /// the ledger refuses.
    fn may_ask_shields(
        &self,
        event: &Event,
        now: Timestamp,
        asked: HoldTermsAsked,
    ) -> Result<bool, Rejection> {
        match event.require_terms(now, asked) {
            Ok(_) => Ok(true),
            Err(_) if self.parts.ledger.is_shared() => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }
}

fn resolve_wish(event: &Event, ask: &WishAsk<'_>) -> Result<Wish, Rejection> {
    match ask {
        WishAsk::Named(units) => Ok(Wish::Named(units.wanted(&event.chart)?)),
        WishAsk::Best {
            quantity,
            category,
            together,
        } => {
            let category = match category {
                None => None,
                Some(name) => Some(event.chart.category(name).ok_or_else(|| {
                    let known = event.chart.categories().join("`, `");
                    let text = format!("no category `{name}`; there are `{known}`");
                    Rejection::Invalid(soldonce_core::Invalid::new("best.category", text))
                })?),
            };
            Ok(Wish::Best {
                quantity: *quantity,
                category,
                together: *together,
            })
        }
    }
}
