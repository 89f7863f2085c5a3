//! The delivery of notices to the endpoint: queued, sent, retried with exponential back-off until
//! they are accepted (a 2xx status), given up after [`TRIES_MAX`] tries.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use soldonce_clock::{BootTime, Clock};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::limits::{REMEMBERED_MAX, RETRY_MS, RETRY_MS_MAX, TRIES_MAX};
use super::plan::Delivery;
use super::send::{Endpoint, send};
use super::webhook::{SigningSecrets, Webhook, webhooks};

/// The outcome of one sending of a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The notice's id.
    pub id: String,
    /// The notice's type, such as `payment_intent.succeeded`.
    pub kind: String,
    /// False if the plan added it: a replay, a forgery, or one with wrong data.
    pub is_genuine: bool,
    /// The status of the answer; `None` when there was no answer in time.
    pub status: Option<u16>,
}

impl Sent {
    /// Tells whether it was accepted: answered with a 2xx status.
    pub fn is_taken(&self) -> bool {
        matches!(self.status, Some(200..300))
    }
}

/// The queue of notices.
pub(super) struct Post {
    clock: Arc<dyn Clock>,
    pub(super) secrets: SigningSecrets,
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    endpoint: Option<Endpoint>,
    waiting: VecDeque<(BootTime, Webhook)>,
    /// Sent after the notice that is queued next.
    behind_next: Vec<Webhook>,
    held_back: Vec<Webhook>,
    flying: usize,
    at_once: usize,
    sent: Vec<Sent>,
}

impl Post {
    pub(super) fn new(clock: Arc<dyn Clock>, secrets: SigningSecrets) -> Self {
        Self {
            clock,
            secrets,
            state: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the tasks that wait for a change.
    fn change<T>(&self, how: impl FnOnce(&mut State) -> T) -> T {
        let changed = how(&mut self.state());
        self.changed.send_replace(());
        changed
    }

    pub(super) fn deliver_to(&self, endpoint: Endpoint) {
        self.change(|state| state.endpoint = Some(endpoint));
    }

    /// Queues a notice to be delivered in this way; from now on at most `at_once` are being sent at
    /// a time. Discards the notice if there is no endpoint.
    pub(super) fn put(&self, notice: &Value, way: Delivery, at_once: usize) {
        let now = self.clock.boot();
        self.change(|state| {
            state.at_once = at_once;
            if state.endpoint.is_none() {
                return;
            }
            let mut webhooks = webhooks(notice, way);
            if way == Delivery::HeldBack {
                state.held_back.append(&mut webhooks);
            } else if way == Delivery::AfterNext {
                state.behind_next.append(&mut webhooks);
            } else {
                webhooks.append(&mut state.behind_next);
                state.enqueue(now, webhooks);
            }
        });
    }

    /// Sends a notice now and waits for its answer; if it is not accepted, it is retried as others.
    pub(super) async fn deliver_first(&self, notice: &Value) {
        let Some(endpoint) = self.state().endpoint.clone() else {
            return;
        };
        for webhook in webhooks(notice, Delivery::BeforeReply) {
            self.change(|state| state.flying += 1);
            self.send(&endpoint, webhook).await;
        }
    }

    /// Queues the notices that were held back.
    pub(super) fn release(&self) {
        let now = self.clock.boot();
        self.change(|state| {
            let held_back = std::mem::take(&mut state.held_back);
            state.enqueue(now, held_back);
            state.let_go_behind(now);
        });
    }

    /// Retries now all notices that wait for their next try.
    pub(super) fn retry_now(&self) {
        let now = self.clock.boot();
        self.change(|state| {
            for (at, _) in &mut state.waiting {
                *at = (*at).min(now);
            }
        });
    }

    /// Waits until every notice that is not held back was accepted or given up.
    pub(super) async fn quiet(&self) {
        let mut changed = self.changed.subscribe();
        while self.waiting() > 0 {
            if self.state().is_idle() {
                // None comes before those that wait for the next one.
                let now = self.clock.boot();
                self.change(|state| state.let_go_behind(now));
            }
            // The sender lives in `self`.
            changed.changed().await.ok();
        }
    }

    /// Counts the notices that are queued or being sent.
    pub(super) fn waiting(&self) -> usize {
        let state = self.state();
        state.waiting.len() + state.flying + state.behind_next.len()
    }

    /// Counts the notices that are held back.
    pub(super) fn held_back(&self) -> usize {
        self.state().held_back.len()
    }

    /// Returns the outcome of every sending so far, up to [`REMEMBERED_MAX`].
    pub(super) fn sent(&self) -> Vec<Sent> {
        self.state().sent.clone()
    }

    /// Sends queued notices when they are due, until it is dropped.
    pub(super) async fn run(self: Arc<Self>) {
        let mut changed = self.changed.subscribe();
        let mut flights = JoinSet::new();
        loop {
            changed.borrow_and_update();
            while let Some((endpoint, webhook)) = self.state().take_due(self.clock.boot()) {
                flights.spawn(Arc::clone(&self).fly(endpoint, webhook));
            }
            while flights.try_join_next().is_some() {}
            let next = self.state().next_at();
            tokio::select! {
                // The sender lives in `self`.
                _ = changed.changed() => {}
                () = self.clock.sleep_until(next.unwrap_or_default()), if next.is_some() => {}
            }
        }
    }

    async fn fly(self: Arc<Self>, endpoint: Endpoint, webhook: Webhook) {
        self.send(&endpoint, webhook).await;
    }

    async fn send(&self, endpoint: &Endpoint, webhook: Webhook) {
        let signature = webhook.signature(&self.secrets, self.clock.wall_ms());
        let status = send(endpoint, &webhook.body, &signature).await;
        let now = self.clock.boot();
        self.change(|state| state.settle(now, webhook, status));
    }
}

impl State {
    fn enqueue(&mut self, now: BootTime, webhooks: Vec<Webhook>) {
        self.waiting
            .extend(webhooks.into_iter().map(|webhook| (now, webhook)));
    }

    fn let_go_behind(&mut self, now: BootTime) {
        let behind = std::mem::take(&mut self.behind_next);
        self.enqueue(now, behind);
    }

    /// Tells whether none is queued or being sent.
    fn is_idle(&self) -> bool {
        self.flying == 0 && self.waiting.is_empty()
    }

    fn take_due(&mut self, now: BootTime) -> Option<(Endpoint, Webhook)> {
        if self.flying >= self.at_once {
            return None;
        }
        let endpoint = self.endpoint.clone()?;
        let at = self.waiting.iter().position(|(at, _)| *at <= now)?;
        let (_, webhook) = self.waiting.remove(at)?;
        self.flying += 1;
        Some((endpoint, webhook))
    }

    /// Finds when the next notice is due; `None` if none is queued or none may be sent now.
    fn next_at(&self) -> Option<BootTime> {
        let may_send = self.flying < self.at_once && self.endpoint.is_some();
        let earliest = self.waiting.iter().map(|(at, _)| *at).min();
        earliest.filter(|_| may_send)
    }

    fn settle(&mut self, now: BootTime, mut webhook: Webhook, status: Option<u16>) {
        self.flying -= 1;
        let sent = Sent {
            id: webhook.id.clone(),
            kind: webhook.kind.clone(),
            is_genuine: webhook.is_genuine,
            status,
        };
        let is_done = sent.is_taken() || !webhook.is_genuine || webhook.tries + 1 >= TRIES_MAX;
        if self.sent.len() < REMEMBERED_MAX {
            self.sent.push(sent);
        }
        if is_done {
            return;
        }
        let wait_ms = RETRY_MS.saturating_mul(1 << webhook.tries);
        let at = now.plus_ms(wait_ms.min(RETRY_MS_MAX));
        webhook.tries += 1;
        self.waiting.push_back((at, webhook));
    }
}
