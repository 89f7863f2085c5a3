//! Delivers messages: those of one subject one after the other, each until its endpoint has it or
//! its attempts are used up. No caller waits for it. When a server dies, another one, or itself
//! after its start, takes over its deliveries, so a message may come twice and is never lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use soldonce_clock::BootTime;
use soldonce_core::Span;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use tracing::field::Empty;

use super::Engine;
use crate::catch_panic::catch_panic;
use crate::ledger::AgeClock;
use crate::limits::{
    WEBHOOK_AT_ONCE_MAX, WEBHOOK_EVERY_MS, WEBHOOK_FORGET_EVERY_MS, WEBHOOK_FORGET_MAX,
    WEBHOOK_KEEP_MS, WEBHOOK_LOG_MS,
};
use crate::metrics::SPANS;
use crate::trouble::Trouble;
use crate::webhook::{
    Attempt, DueDelivery, Endpoint, EndpointId, PostOutcome, Sender, SignedMessage, Then,
    next_attempt, signatures,
};

/// Delivers messages until `shutdown`; nothing without a sender.
///
/// # Cancel safety
/// Dropped, attempts under way may have arrived; they are made again by the next run.
pub async fn run_webhooks(engine: Engine, shutdown: CancellationToken) {
    let Some(sender) = engine.sender().cloned() else {
        return;
    };
    let clock = Arc::clone(&engine.world().clock);
    let mut work = Work {
        forget_at: clock.boot(),
        ages: AgeClock::starting_at(engine.now(), &*clock),
        engine,
        sender,
        running: JoinSet::new(),
        under_way: BTreeMap::new(),
        ended: Vec::new(),
        known: BTreeSet::new(),
        trouble: Trouble::default(),
    };
    loop {
        let next = clock.boot().plus_ms(WEBHOOK_EVERY_MS);
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = clock.sleep_until(next) => {}
            Some(ended) = work.running.join_next() => work.take_in(ended),
        }
        if shutdown.run_until_cancelled(work.step()).await.is_none() {
            return;
        }
    }
}

/// The state of the delivery loop.
struct Work {
    engine: Engine,
    sender: Sender,
    running: JoinSet<Attempt>,
    /// Deliveries under way, by number, until their outcome is stored.
    under_way: BTreeMap<i64, EndpointId>,
    /// Outcomes of attempts that are not stored yet.
    ended: Vec<Attempt>,
    /// The endpoints of the last look; kept as they were while the log has deliveries that are to
    /// be deleted.
    known: BTreeSet<EndpointId>,
    /// When old deliveries are next deleted from the log.
    forget_at: BootTime,
    ages: AgeClock,
    /// Whether the ledger cannot be read or written, for the log.
    trouble: Trouble,
}

impl Work {
    fn take_in(&mut self, ended: Result<Attempt, JoinError>) {
        match ended {
            Ok(attempt) => self.ended.push(attempt),
            Err(error) => tracing::error!(%error, "a delivery was not attempted to its end"),
        }
    }

    /// Stores the outcomes of attempts that ended, then starts the deliveries that are due.
    async fn step(&mut self) {
        while let Some(ended) = self.running.try_join_next() {
            self.take_in(ended);
        }
        let now = self.engine.world().clock.boot();
        if let Err(why) = self.note().await {
            // Not delivered again as long as this server remembers.
            if self.trouble.lasts(now) {
                tracing::warn!(why, "attempts of webhooks cannot be noted");
            }
            return;
        }
        match self.begin().await {
            Ok(()) if self.trouble.ends() => tracing::info!("webhooks can be read again"),
            Err(error) if self.trouble.lasts(now) => {
                tracing::warn!(%error, "webhooks cannot be read");
            }
            Ok(()) | Err(_) => {}
        }
    }

    async fn note(&mut self) -> Result<(), &'static str> {
        if self.ended.is_empty() {
            return Ok(());
        }
        let webhooks = self.engine.parts.ledger.webhooks();
        let noted = webhooks.note_attempts(self.ended.clone()).await;
        noted.map_err(|rejection| rejection.code())?;
        for attempt in self.ended.drain(..) {
            self.under_way.remove(&attempt.number);
        }
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), crate::ledger::ReadError> {
        let engine = self.engine.clone();
        let webhooks = engine.parts.ledger.webhooks();
        let endpoints = webhooks.endpoints().await?;
        self.forget(&endpoints).await;
        if endpoints.is_empty() {
            return Ok(());
        }
        let keep = Span::from_ms(WEBHOOK_KEEP_MS);
        for delivery in webhooks.take_deliveries(keep, WEBHOOK_AT_ONCE_MAX).await? {
            let endpoint = endpoints.iter().find(|known| known.id == delivery.endpoint);
            let busy = self.under_way.values();
            let busy = busy.filter(|endpoint| **endpoint == delivery.endpoint);
            let has_room = busy.count() < WEBHOOK_AT_ONCE_MAX;
            if let Some(endpoint) = endpoint
                && has_room
                && !self.under_way.contains_key(&delivery.number)
            {
                self.start(endpoint.clone(), delivery);
            }
        }
        Ok(())
    }

    fn start(&mut self, endpoint: Endpoint, delivery: DueDelivery) {
        self.under_way.insert(delivery.number, endpoint.id);
        let (engine, sender) = (self.engine.clone(), self.sender.clone());
        self.running.spawn(async move {
            let attempted = catch_panic(attempt(&engine, &sender, &endpoint, &delivery)).await;
            // Counted as failed: made again at once, it would panic again and again.
            let failed = PostOutcome::failed("internal");
            let panicked = || outcome(&engine, &endpoint, &delivery, failed);
            attempted.unwrap_or_else(panicked)
        });
    }

    /// Deletes old deliveries from the log now and then, and those of an endpoint that was deleted.
    async fn forget(&mut self, endpoints: &[Endpoint]) {
        let now = self.engine.world().clock.boot();
        let known: BTreeSet<EndpointId> = endpoints.iter().map(|endpoint| endpoint.id).collect();
        let has_lost = !self.known.is_subset(&known);
        let is_time = !known.is_empty() && now >= self.forget_at;
        if !has_lost && !is_time {
            self.known = known;
            return;
        }
        let clock = &*self.engine.world().clock;
        let aged = self.ages.at(self.engine.now(), clock);
        let before = aged.minus(Span::from_ms(WEBHOOK_LOG_MS));
        let webhooks = self.engine.parts.ledger.webhooks();
        let forgotten = webhooks.forget_deliveries(before, WEBHOOK_FORGET_MAX);
        // While there is more, the next call goes on.
        let forgotten = forgotten.await;
        if forgotten.is_ok_and(|count| count < WEBHOOK_FORGET_MAX) {
            self.known = known;
            self.forget_at = now.plus_ms(WEBHOOK_FORGET_EVERY_MS);
        }
    }
}

/// Makes one attempt, from its signature to its outcome.
async fn attempt(
    engine: &Engine,
    sender: &Sender,
    endpoint: &Endpoint,
    delivery: &DueDelivery,
) -> Attempt {
    // The receiver compares it with its own clock.
    let at = engine.wall_now();
    let secrets = engine.secrets_of(endpoint, engine.now());
    let message = SignedMessage {
        url: &endpoint.url,
        id: delivery.message,
        at,
        signatures: signatures(&secrets, delivery.message, at, &delivery.body),
        body: &delivery.body,
    };
    let span = tracing::info_span!(
        target: SPANS, "webhook.post", otel.kind = "client", webhook.id = %delivery.message,
        soldonce.endpoint = %endpoint.id, http.response.status_code = Empty,
    );
    let posted = sender.post(message).instrument(span.clone()).await;
    span.record("http.response.status_code", posted.status);
    outcome(engine, endpoint, delivery, posted)
}

/// Decides what becomes of a delivery after an attempt, and reports it.
fn outcome(
    engine: &Engine,
    endpoint: &Endpoint,
    delivery: &DueDelivery,
    posted: PostOutcome,
) -> Attempt {
    let ended = engine.now();
    let asked = posted.retry_after;
    let quiet_until = asked.map(|asked| ended.plus(asked.wait(engine.wall_now())));
    let then = match posted {
        PostOutcome { problem: None, .. } => Then::Delivered,
        PostOutcome { .. } if posted.is_gone() => Then::Disable,
        PostOutcome { .. } => {
            let entropy = &*engine.world().entropy;
            next_attempt(delivery.attempts, ended, quiet_until, entropy)
        }
    };
    engine.parts.metrics.posted(then);
    if let Some(problem) = posted.problem {
        report(endpoint, delivery, posted.status, problem, then);
    }
    Attempt {
        number: delivery.number,
        endpoint: endpoint.id,
        before: delivery.attempts,
        at: ended,
        status: posted.status,
        problem: posted.problem,
        quiet_until,
        then,
    }
}

fn report(
    endpoint: &Endpoint,
    delivery: &DueDelivery,
    status: Option<u16>,
    problem: &'static str,
    then: Then,
) {
    let (kind, message, to) = (delivery.kind.as_str(), delivery.message, endpoint.id);
    let tries = delivery.attempts.saturating_add(1);
    match then {
        Then::Disable => {
            tracing::error!(%to, %message, kind, "a webhook endpoint says it is gone: it is disabled");
        }
        Then::GiveUp => {
            tracing::error!(%to, %message, kind, tries, status, problem, "a webhook is given up");
        }
        Then::Again(_) | Then::Delivered => {
            tracing::info!(%to, %message, kind, tries, status, problem, "a webhook failed");
        }
    }
}
