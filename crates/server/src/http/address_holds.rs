//! What shoppers at one address may hold: asked before the ledger, which decides all the same. API keys
//! are not counted.

use std::net::IpAddr;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use soldonce_core::{Event, EventId, HoldId, HoldState, Span, Timestamp};
use soldonce_engine::rate::{HeldSums, OwnHeld};
use soldonce_engine::{Caller, Reply};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::answer;
use super::api_request::ApiRequest;
use super::app::App;
use super::kinds;
use super::problem::{Handled, Problem};
use super::rates::{refusal, tell, tell_held, warn_of_proxy};
use crate::rate::{Counting, HeldKind, RateKind, Reserved, Wish, exceeded, id_of};

/// A request that may go to the ledger.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    reserved: Option<Reserved>,
    told: HeaderMap,
}

/// What a request adds to a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    Units(u32),
    Checkout,
}

/// Whose holds are counted.
pub(super) struct AddressHolds {
    app: Arc<App>,
    /// None for callers that are not counted.
    shopper: Option<Shopper>,
}

struct Shopper {
    address: u128,
    proxy: Option<IpAddr>,
    /// Cancelled once the caller has hung up.
    gone: CancellationToken,
}

impl ApiRequest {
    /// Returns as whom the request's holds are counted.
    pub(super) fn held_by_address(&self) -> AddressHolds {
        let is_counted = matches!(&self.caller, Some(Caller::Shopper(_)));
        let is_limited = self.app.rates.are_holds_limited();
        let shopper = || Shopper {
            address: id_of(self.app.address_of(&self.parts)),
            proxy: self.app.unknown_proxy(&self.parts),
            gone: CancellationToken::new(),
        };
        AddressHolds {
            app: Arc::clone(&self.app),
            shopper: (is_counted && is_limited).then(shopper),
        }
    }
}

impl AddressHolds {
    /// Runs a command to its end, though its caller hangs up once it is admitted: what it takes is counted all the
    /// same.
    pub(super) async fn run_to_its_end<F>(self, command: impl FnOnce(Self) -> F) -> Handled
    where
        F: Future<Output = Handled> + Send + 'static,
    {
        let Some(shopper) = &self.shopper else {
            return command(self).await;
        };
        let _gone = shopper.gone.clone().drop_guard();
        let commands = self.app.commands.clone();
        let ended = commands.spawn(command(self).in_current_span()).await;
        ended.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(Problem::new(&kinds::OUTCOME_UNKNOWN)),
        })
    }

    /// Passes a request for a hold of so many units that no limit forbids. The hold ends after
    /// `ttl`, or after what the event says.
    pub(super) async fn admit(
        &self,
        event: &EventId,
        units: u32,
        ttl: Option<Span>,
    ) -> Result<Admitted, Problem> {
        let Some(shopper) = &self.shopper else {
            return Ok(Admitted::default());
        };
        let engine = &self.app.engine;
        let event = engine.find_event(event).await?;
        // A session that asks for longer is refused.
        let most = event.policy.hold_ttl;
        let ends_at = engine.now().plus(ttl.map_or(most, |ttl| ttl.min(most)));
        let more = More::Units(units);
        self.admit_wish(&event, shopper, more, ends_at).await
    }

    /// Passes a request that adds to a hold, as [`AddressHolds::admit`] does for a new one.
    pub(super) async fn admit_on(&self, hold: HoldId, more: More) -> Result<Admitted, Problem> {
        let Some(shopper) = &self.shopper else {
            return Ok(Admitted::default());
        };
        let engine = &self.app.engine;
        let known = self.app.rates.held.find(shopper.address, hold);
        if more == More::Checkout && known.is_some_and(|(_, checkouts)| checkouts > 0) {
            return Ok(Admitted::default());
        }
        let event = match known.and_then(|(no, _)| engine.event_of_no(no)) {
            Some(event) => Some(event),
            None => engine.event_of_hold(hold).await,
        };
        match event {
            Some(event) => self.admit_wish(&event, shopper, more, engine.now()).await,
            // The engine says what is wrong with the hold.
            None => Ok(Admitted::default()),
        }
    }

    async fn admit_wish(
        &self,
        event: &Event,
        shopper: &Shopper,
        more: More,
        ends_at: Timestamp,
    ) -> Result<Admitted, Problem> {
        let (units, checkouts) = match more {
            More::Units(units) => (units, 0),
            More::Checkout => (0, 1),
        };
        let wish = Wish {
            address: shopper.address,
            event: event.no,
            units,
            checkouts,
            ends_at,
        };
        let admitted = self.app.admit_wish(event, wish).await;
        if shopper.gone.is_cancelled() {
            // Not asked of the ledger: no caller reads this.
            return Err(Problem::new(&kinds::SHUTTING_DOWN));
        }
        admitted.inspect_err(|_| warn_of_proxy(shopper.proxy))
    }

    /// Counts a hold no more: the ledger ended it.
    pub(super) async fn ended(&self, hold: HoldId) {
        let app = &self.app;
        if let Some(Shopper { address, .. }) = self.shopper
            && let Some(event) = app.rates.held.forget(address, hold)
            && let Some(event) = app.engine.event_of_no(event)
        {
            app.tell_others(address, &event).await;
        }
    }

    /// Marks a hold: the ledger is asked about it before the next request is counted.
    pub(super) fn doubt(&self, hold: HoldId) {
        if let Some(Shopper { address, .. }) = self.shopper {
            let now = self.app.engine.now();
            self.app.rates.held.doubt(address, hold, now);
        }
    }
}

impl Admitted {
    /// Builds the answer of a reply. Counts what the request added to the hold, and says what is left.
    pub(super) fn answer(self, app: &App, hold: HoldId, reply: &Reply) -> Response {
        let mut response = answer::reply(app, reply);
        if let Some(reserved) = self.reserved {
            reserved.becomes(hold, app.engine.now());
        }
        response.headers_mut().extend(self.told);
        response
    }
}

impl App {
    async fn admit_wish(&self, event: &Event, wish: Wish) -> Result<Admitted, Problem> {
        let (held, now) = (&self.rates.held, self.engine.now());
        let limits = || self.rates.held_limits.of_request(event, wish);
        self.look_at_holds(wish.address, Some(now)).await;
        self.require_no_lapses(wish)?;
        let mut reserved = held.reserve(wish, limits(), now);
        if reserved.is_err() && held.may_look(wish.address, now) {
            self.look_at_holds(wish.address, None).await;
            reserved = held.reserve(wish, limits(), now);
        }
        let full = |kind| self.full(kind, wish.address, limits());
        let (reserved, own) = reserved.map_err(full)?;
        let mut sums = own;
        if let Some(all) = self.tell_others(wish.address, event).await {
            // Another server may have counted less than this one a moment ago.
            sums = at_least(all, own);
            if exceeded(sums, limits()).is_some() && held.may_look(wish.address, now) {
                self.look_at_holds(wish.address, None).await;
                sums = self.tell_others(wish.address, event).await.unwrap_or(sums);
            }
            if let Some(kind) = exceeded(sums, limits()) {
                drop(reserved);
                self.tell_others(wish.address, event).await;
                return Err(full(kind));
            }
        }
        let ends_in = self.ends_in(wish.address);
        let mut told = HeaderMap::new();
        for (kind, limit) in limits() {
            let left = limit.saturating_sub(kind.of(sums));
            tell_held(&mut told, (kind.as_str(), limit), left, ends_in);
        }
        Ok(Admitted { reserved, told })
    }

    /// Asks the ledger about holds of an address, those that should be over by `now` or all of them.
    async fn look_at_holds(&self, address: u128, now: Option<Timestamp>) {
        let held = &self.rates.held;
        for id in held.to_look_at(address, now) {
            // While the ledger cannot be read, what is known is what counts.
            let Ok(found) = self.engine.ledger().hold(id).await else {
                return;
            };
            let time = self.engine.now();
            let event = found.as_ref().map(|found| found.event);
            let event = event.and_then(|no| self.engine.event_of_no(no));
            // Its holds are over before that is written down.
            let is_called_off = event.is_some_and(|event| event.cancelled().is_some());
            let live = found.as_ref().filter(|found| found.is_live(time));
            if let Some(live) = live.filter(|_| !is_called_off) {
                held.learn(address, live);
                continue;
            }
            let is_lapse =
                found.is_some_and(|over| matches!(over.state_at(time), HoldState::Expired));
            if held.forget(address, id).is_some() && is_lapse {
                let boot = self.clock().boot();
                self.rates.count(lapses_of(address), boot).await;
            }
        }
    }

    /// Refuses more units to an address of which too many holds ended unpaid.
    fn require_no_lapses(&self, wish: Wish) -> Result<(), Problem> {
        if wish.units == 0 {
            return Ok(());
        }
        let now = self.clock().boot();
        let counted = self.rates.look(lapses_of(wish.address), now);
        let Some(counted) = counted else {
            return Ok(());
        };
        let Some(problem) = refusal(&counted) else {
            return Ok(());
        };
        self.rates.counts.refused(RateKind::Lapses.as_str());
        let mut told = HeaderMap::new();
        tell(&mut told, &counted);
        Err(problem.telling(told))
    }

    /// Tells other servers what this one counts; returns what all count, if servers count together.
    async fn tell_others(&self, address: u128, event: &Event) -> Option<HeldSums> {
        let shared = self.rates.shared.as_ref()?;
        let (own, ends_at) = self.rates.held.of_event(address, event.no);
        let now = self.engine.now();
        // What is under way may last as long as a new hold or a payment.
        let least = event.policy.hold_ttl.max(event.policy.payment_window);
        let told = shared.tell_held(OwnHeld {
            address,
            event: event.no,
            units: own.of_event,
            checkouts: own.checkouts,
            ends_in: ends_at.map_or(least, |end| least.max(now.until(end))),
        });
        let told = told.await;
        if told.is_err() {
            self.rates.counts.unshared();
        }
        told.ok()
    }

    /// Returns the time until the first hold of an address ends; 0 if none is known.
    fn ends_in(&self, address: u128) -> Duration {
        let now = self.engine.now();
        let end = self.rates.held.first_end(address, now);
        Duration::from_millis(end.map_or(0, |end| now.until(end).ms()))
    }

    fn full(
        &self,
        kind: HeldKind,
        address: u128,
        mut limits: impl Iterator<Item = (HeldKind, u32)>,
    ) -> Problem {
        self.rates.counts.refused(kind.as_str());
        let detail = match kind {
            HeldKind::Units => {
                "this address holds as many units as it may for now: buy or release some"
            }
            HeldKind::Share => {
                "this address holds as many units of this event as it may for now: buy or release \
                 some"
            }
            HeldKind::Checkouts => {
                "this address has as many payments under way as it may: finish or abandon one"
            }
        };
        let ends_in = self.ends_in(address);
        let mut told = HeaderMap::new();
        if let Some((_, limit)) = limits.find(|(limited, _)| *limited == kind) {
            tell_held(&mut told, (kind.as_str(), limit), 0, ends_in);
        }
        Problem::too_often(detail, ends_in).telling(told)
    }
}

fn lapses_of(address: u128) -> Counting {
    Counting {
        kind: RateKind::Lapses,
        id: address,
    }
}

fn at_least(all: HeldSums, own: HeldSums) -> HeldSums {
    HeldSums {
        units: all.units.max(own.units),
        of_event: all.of_event.max(own.of_event),
        checkouts: all.checkouts.max(own.checkouts),
    }
}
