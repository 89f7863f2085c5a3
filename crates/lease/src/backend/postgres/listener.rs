//! Wake-ups by NOTIFY, if enabled: one connection that listens for the releases of a namespace.
//! Hints only; waiters poll all the same.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soldonce_clock::timeout_at;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, Client};

use super::PgConfig;
use crate::Clock;
use crate::backend::{Names, WakeSender, WakeStream};
use crate::locks::lock;

/// Pause before a reconnect.
const RECONNECT: Duration = Duration::from_secs(1);

/// Longest wait for a connection, or for an answer on it; also the pause between two checks that
/// the server still answers.
const ANSWER: Duration = Duration::from_secs(5);

/// With more names than this, those without a listener are removed.
const FORGET_ABOVE: usize = 256;

/// Listens from the first call of [`Listener::listen`] on.
pub(super) struct Listener {
    subscription: Subscription,
    listening: watch::Sender<bool>,
    task: Mutex<JoinSet<()>>,
}

#[derive(Clone)]
struct Subscription {
    config: PgConfig,
    clock: Arc<dyn Clock>,
    channel: String,
    wakes: Arc<Mutex<HashMap<String, WakeSender>>>,
}

impl Listener {
    pub(super) fn new(config: PgConfig, clock: Arc<dyn Clock>, channel: String) -> Self {
        Self {
            subscription: Subscription {
                config,
                clock,
                channel,
                wakes: Arc::default(),
            },
            listening: watch::Sender::new(false),
            task: Mutex::default(),
        }
    }

    pub(super) fn channel(&self) -> &str {
        &self.subscription.channel
    }

    /// Subscribes to hints about `names`; ready when the server listens or `within` is over.
    pub(super) async fn listen(&self, names: &Names, within: Duration) -> WakeStream {
        let Some(name) = names.routing_key() else {
            return WakeStream::silent();
        };
        let stream = self.subscription.stream(name.as_str());
        self.begin();
        let mut listening = self.listening.subscribe();
        let until = self.subscription.clock.boot().plus(within);
        tokio::select! {
            biased;
            // Fails only when the sender is gone, which is part of `self`.
            listened = listening.wait_for(|listening| *listening) => drop(listened),
            () = self.subscription.clock.sleep_until(until) => {}
        }
        stream
    }

    /// Starts the task if it is not running.
    fn begin(&self) {
        let mut task = lock(&self.task);
        while task.try_join_next().is_some() {}
        if task.is_empty() {
            let (subscription, listening) = (self.subscription.clone(), self.listening.clone());
            task.spawn(subscription.run(listening));
        }
    }
}

impl Subscription {
    fn stream(&self, name: &str) -> WakeStream {
        let mut wakes = lock(&self.wakes);
        if wakes.len() > FORGET_ABOVE {
            wakes.retain(|_, sender| sender.listeners() > 0);
        }
        wakes.entry(name.to_owned()).or_default().stream()
    }

    /// Wakes the waiters for a notification. Its payload is a row's name: `group/name`, or a name.
    fn wake(&self, message: &AsyncMessage) {
        let AsyncMessage::Notification(told) = message else {
            return;
        };
        let name = told.payload().split('/').next().unwrap_or_default();
        if let Some(sender) = lock(&self.wakes).get(name) {
            sender.wake();
        }
    }

    async fn run(self, listening: watch::Sender<bool>) {
        loop {
            self.listen_once(&listening).await;
            listening.send_replace(false);
            let again = self.clock.boot().plus(RECONNECT);
            self.clock.sleep_until(again).await;
        }
    }

    /// Listens until the connection ends or answers nothing more.
    async fn listen_once(&self, listening: &watch::Sender<bool>) {
        let (client, mut connection) = match self.in_time(Box::pin(self.config.connect())).await {
            Some(Ok(connected)) => connected,
            Some(Err(error)) => return tracing::debug!(%error, "no connection for wake-ups"),
            None => return tracing::debug!("no connection for wake-ups in time"),
        };
        // The channel holds no quote: a namespace is small letters, digits and `-`.
        let listen = format!("LISTEN \"{}\"", self.channel);
        let acknowledged = async {
            if !self.is_answered(&client, &listen).await {
                return;
            }
            listening.send_replace(true);
            // Notifications before the LISTEN are lost, so all waiters ask again.
            lock(&self.wakes).values().for_each(WakeSender::wake);
            // A server that is gone without a word ends no connection.
            while self.is_answered(&client, "").await {
                self.clock.sleep_until(self.clock.boot().plus(ANSWER)).await;
            }
        };
        let messages = async {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                self.wake(&message);
            }
        };
        tokio::select! {
            () = messages => {}
            () = acknowledged => {}
        }
    }

    async fn is_answered(&self, client: &Client, sql: &str) -> bool {
        let answered = self.in_time(client.batch_execute(sql)).await;
        let is_answered = matches!(answered, Some(Ok(())));
        if !is_answered {
            tracing::debug!(?answered, "no wake-ups");
        }
        is_answered
    }

    /// Waits for the future's result; `None` after [`ANSWER`].
    async fn in_time<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        timeout_at(&*self.clock, self.clock.boot().plus(ANSWER), future).await
    }
}
