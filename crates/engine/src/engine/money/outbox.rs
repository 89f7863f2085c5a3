//! The outbox: tries the effects that commits have left, those of one booking one after the other, each until it is
//! done. No caller waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::BootTime;
use soldonce_core::{BookingId, Effect, Span, Timestamp};
use tokio::task::{self, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Engine, StepError};
use crate::ledger::OpenEffect;
use crate::limits::{
    OUTBOX_ALERT_TRIES, OUTBOX_AT_ONCE_MAX, OUTBOX_AUTHORISE_AFTER_MS, OUTBOX_EVERY_MS,
    OUTBOX_KEEP_MS, OUTBOX_PAUSE_MS, OUTBOX_PAUSE_MS_MAX,
};
use crate::metrics::SPANS;
use crate::payment::ProviderError;
use crate::trouble::Trouble;

/// The failed attempts of an effect, and when it is due again.
#[derive(Clone, Copy)]
struct Tries {
    effect: Effect,
    failed: u32,
    /// The number of the refund's next idempotency key.
    round: u32,
    next: BootTime,
}

/// Carries out effects until `shutdown`.
///
/// # Cancel safety
/// Dropped, calls under way may still be carried out by the provider; they are asked again with the
/// same keys by the next run.
pub async fn run_outbox(engine: Engine, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    let mut outbox = Outbox {
        engine,
        tries: BTreeMap::new(),
        unread: Trouble::default(),
        under_way: BTreeMap::new(),
        calls: JoinSet::new(),
    };
    let mut next = clock.boot();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            Some(ended) = outbox.calls.join_next() => outbox.note(ended),
            () = clock.sleep_until(next) => {
                if shutdown.run_until_cancelled(outbox.begin_due()).await.is_none() {
                    return;
                }
                next = clock.boot().plus_ms(OUTBOX_EVERY_MS);
            }
        }
    }
}

/// The outcome of one attempt, with the round of the next one.
type AttemptResult = (Effect, u32, Result<(), StepError>);

/// The running outbox. A slow call does not delay others: rounds go on while it is under way.
struct Outbox {
    engine: Engine,
    tries: BTreeMap<BookingId, Tries>,
    /// Whether the ledger cannot be read, for the log.
    unread: Trouble,
    under_way: BTreeMap<BookingId, (task::Id, Effect)>,
    calls: JoinSet<AttemptResult>,
}

impl Outbox {
    /// Starts an attempt of each effect that is due.
    async fn begin_due(&mut self) {
        let keep = Span::from_ms(OUTBOX_KEEP_MS);
        let ledger = &self.engine.parts.ledger;
        // Those that wait or are under way must not hide the others behind them.
        let known = self.tries.len().saturating_add(self.under_way.len());
        let limit = known.saturating_add(OUTBOX_AT_ONCE_MAX);
        let open = match ledger.take_effects(keep, limit).await {
            Ok(open) => open,
            Err(error) => {
                if self.unread.lasts(self.engine.world().clock.boot()) {
                    tracing::warn!(%error, "the outbox cannot be read");
                }
                return;
            }
        };
        if self.unread.ends() {
            tracing::info!("the outbox can be read again");
        }
        let count = |of: usize| i64::try_from(of).unwrap_or(i64::MAX);
        let metrics = &self.engine.parts.metrics;
        metrics.outbox_pending.set(count(open.len()));
        metrics.outbox_stuck.set(count(self.stuck()));
        let now = self.engine.now();
        let left: BTreeMap<_, _> = open.iter().map(|of| (of.effect.booking(), of)).collect();
        self.tries
            .retain(|id, of| left.get(id).is_some_and(|open| open.effect == of.effect));
        for open in open.iter().filter(|open| is_due(open, now)) {
            self.begin(open.effect);
        }
    }

    fn stuck(&self) -> usize {
        let is_stuck = |of: &&Tries| of.failed >= OUTBOX_ALERT_TRIES;
        self.tries.values().filter(is_stuck).count()
    }

    fn begin(&mut self, effect: Effect) {
        let id = effect.booking();
        let of = self.tries.get(&id);
        let waits = of.is_some_and(|of| of.next > self.engine.world().clock.boot());
        let is_full = self.under_way.len() >= OUTBOX_AT_ONCE_MAX;
        if waits || is_full || self.under_way.contains_key(&id) {
            return;
        }
        let mut round = of.map_or(0, |of| of.round);
        let engine = self.engine.clone();
        let span =
            tracing::info_span!(target: SPANS, "outbox.step", soldonce.booking = %id, ?effect);
        let step = async move {
            let done = engine.carry_out(effect, &mut round).await;
            (effect, round, done)
        };
        let call = self.calls.spawn(step.instrument(span));
        self.under_way.insert(id, (call.id(), effect));
    }

    fn note(&mut self, ended: Result<AttemptResult, JoinError>) {
        let (effect, round, done) = match ended {
            Ok((effect, round, done)) => (effect, Some(round), done.map_err(Some)),
            Err(error) => {
                let mut calls = self.under_way.values();
                let Some((_, effect)) = calls.find(|(call, _)| *call == error.id()) else {
                    return;
                };
                tracing::error!(?effect, %error, "a step of the outbox ended by a panic");
                (*effect, None, Err(None))
            }
        };
        let id = effect.booking();
        self.under_way.remove(&id);
        let Err(error) = done else {
            self.tries.remove(&id);
            return;
        };
        let before = self.tries.get(&id);
        let failed = before.map_or(0, |of| of.failed).saturating_add(1);
        let round = round.unwrap_or_else(|| before.map_or(0, |of| of.round));
        let pause = pause(failed).max(error.map_or(Duration::ZERO, |error| {
            complain(effect, failed, &error);
            asked_pause(&error)
        }));
        let next = self.engine.world().clock.boot().plus(pause);
        let of = Tries {
            effect,
            failed,
            round,
            next,
        };
        self.tries.insert(id, of);
    }
}

/// Tells whether an effect may be carried out now. A recent intent is left to the caller that asked
/// for it and waits for it. An effect that is later than now was written before the clock was set
/// back.
fn is_due(open: &OpenEffect, now: Timestamp) -> bool {
    let is_recent = open.at <= now && now < open.at.plus(Span::from_ms(OUTBOX_AUTHORISE_AFTER_MS));
    !matches!(open.effect, Effect::Authorise(_)) || !is_recent
}

fn pause(failed: u32) -> Duration {
    let doubled = OUTBOX_PAUSE_MS.saturating_mul(1 << failed.min(16));
    Duration::from_millis(doubled.min(OUTBOX_PAUSE_MS_MAX))
}

/// Returns how long the provider asks to wait, at most the longest pause.
fn asked_pause(error: &StepError) -> Duration {
    let asked = match error {
        StepError::Provider(ProviderError::Busy { retry_after }) => retry_after.map(Span::ms),
        StepError::Provider(_) | StepError::Engine(_) | StepError::Odd(_) => None,
    };
    Duration::from_millis(asked.unwrap_or_default().min(OUTBOX_PAUSE_MS_MAX))
}

fn complain(effect: Effect, failed: u32, error: &StepError) {
    if failed >= OUTBOX_ALERT_TRIES {
        tracing::error!(?effect, failed, %error, "an effect is stuck: look at the provider");
    } else {
        tracing::warn!(?effect, failed, %error, "an effect is not done yet");
    }
}
