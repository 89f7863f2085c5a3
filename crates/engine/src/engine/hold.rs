//! Hold: from a request to the ledger, past the shields.

use soldonce_core::{
    Command, Event, HoldTermsAsked, Holder, HolderName, NewHold, Rejection, Span, Together, Wish,
};

use super::shields::Asked;
use super::{Engine, EngineError, NamedUnits, Reply};
use crate::caller::Call;
use crate::metrics::HoldLabel;
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
        let label = HoldLabel {
            strategy: self.parts.ledger.strategy(),
            outcome,
        };
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
        let live = self.live(event)?;
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
        let mut pass = None;
        // A key may stand for a hold that was made: then the ledger has the answer, not a shield.
        if call.key.is_none()
            && let Wish::Named(selection) = &wish
        {
            let now = self.now();
            event.require_terms(now, asked)?;
            let asked = Asked {
                live: &live,
                event: &event,
                holder: &holder,
                selection,
                now,
            };
            pass = self.pass_shields(asked).await?;
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
