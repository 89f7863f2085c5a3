//! Wakes waiters when a name is released: one connection, one sharded channel for each shard that a
//! waiter listens on. Hints only; a waiter that misses one asks again by itself. `lease.md` 7.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::aio::SendError;
use redis::{PushInfo, PushKind, Value};
use soldonce_clock::timeout_at;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;

use super::keys::{Keyspace, Shard, TOPICS_APART, topic};
use super::link::Link;
use super::role::Replaced;
use super::subscriber::{Limit, Subscriber};
use super::topics::Topics;
use crate::backend::{Names, WakeStream};
use crate::locks::lock;
use crate::{BackendError, Clock};

/// Longest wait for the connection to a server, where one to a cluster has more, and for each answer on it.
const STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// A subscription that was quiet for this long is pinged.
const QUIET_MAX: Duration = Duration::from_secs(3);

/// Shortest and longest pause between two attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Requests that may be queued for the task.
const ASKED_MAX: usize = 1_024;

enum Ask {
    /// Subscribe to the shard's channel; answered when the server has acknowledged it.
    Listen(Shard, oneshot::Sender<()>),
    /// No waiter is left on the shard's channel.
    Idle(Shard),
}

pub(super) struct Listener {
    keys: Arc<Keyspace>,
    topics: Arc<Topics>,
    asks: mpsc::Sender<Ask>,
    clock: Arc<dyn Clock>,
    /// The task before its start; taken by the first waiter, on the runtime that waits.
    unstarted: Mutex<Option<Task>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Listener {
    /// Creates a listener that connects when there is a waiter.
    pub(super) fn new(
        link: Arc<Link>,
        keys: Arc<Keyspace>,
        clock: Arc<dyn Clock>,
        replaced: Replaced,
    ) -> Self {
        let topics = Arc::new(Topics::default());
        let (asks, asked) = mpsc::channel(ASKED_MAX);
        let task = Task {
            link,
            keys: Arc::clone(&keys),
            topics: Arc::clone(&topics),
            asks: asks.clone(),
            asked,
            clock: Arc::clone(&clock),
            replaced,
            has_served: false,
        };
        Self {
            keys,
            topics,
            asks,
            clock,
            unstarted: Mutex::new(Some(task)),
            tasks: Mutex::default(),
        }
    }

    /// Listens for releases of `names`, and waits for the server's acknowledgement at most
    /// `within`.
    pub(super) async fn listen(&self, names: &Names, within: Duration) -> WakeStream {
        self.start();
        let shard = self.keys.shard_of_names(names);
        let topic = topic(names).into_owned();
        let (stream, acknowledged) = self.topics.listen(shard, topic);
        if !acknowledged {
            let (listening, listens) = oneshot::channel();
            let ask = async {
                self.asks.send(Ask::Listen(shard, listening)).await.ok()?;
                listens.await.ok()
            };
            // Without the acknowledgement the stream may miss a release, which a poll finds.
            timeout_at(&*self.clock, self.clock.boot().plus(within), ask).await;
        }
        stream
    }

    fn start(&self) {
        let task = lock(&self.unstarted).take();
        if let Some(task) = task {
            lock(&self.tasks).spawn(task.run());
        }
    }
}

/// Keeps the connection; ends when the listener is dropped, which drops the set it runs in.
struct Task {
    link: Arc<Link>,
    keys: Arc<Keyspace>,
    topics: Arc<Topics>,
    asks: mpsc::Sender<Ask>,
    asked: mpsc::Receiver<Ask>,
    clock: Arc<dyn Clock>,
    replaced: Replaced,
    /// Whether this task had another connection before.
    has_served: bool,
}

impl Task {
    async fn run(mut self) {
        let mut pause = PAUSE_MIN;
        loop {
            let broken = Arc::new(Notify::new());
            if let Ok(subscriber) = self.connect(&broken).await {
                let served = self.serve(subscriber, (&broken, &mut pause)).await;
                tracing::debug!(?served, "subscription ended");
            }
            self.topics.unacknowledge();
            for shard in self.topics.shards() {
                self.topics.forget_idle(shard);
            }
            self.clock.sleep_until(self.clock.boot().plus(pause)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn connect(&self, broken: &Arc<Notify>) -> Result<Subscriber, BackendError> {
        let (topics, broken) = (Arc::clone(&self.topics), Arc::clone(broken));
        let asks = self.asks.clone();
        let heard = move |push: PushInfo| {
            if push.kind == PushKind::SMessage {
                hear(&topics, &asks, &push.data);
            }
            // The driver sends the first; the server sends the second when a slot moves away.
            let dropped =
                push.kind == PushKind::SUnsubscribe && topics.is_wanted(&channel_of(&push.data));
            if push.kind == PushKind::Disconnection || dropped {
                broken.notify_one();
            }
            Ok::<(), SendError>(())
        };
        self.link.subscriber(heard, STEP_TIMEOUT).await
    }

    /// Subscribes again to all that is waited for, then serves requests until the connection
    /// breaks. A server that refuses the subscription is asked again with a back-off.
    async fn serve(
        &mut self,
        mut subscriber: Subscriber,
        (broken, pause): (&Notify, &mut Duration),
    ) -> Result<(), BackendError> {
        for shard in self.topics.shards() {
            self.subscribe(&mut subscriber, shard).await?;
        }
        if std::mem::replace(&mut self.has_served, true) {
            self.replaced.tell("wake-ups");
        }
        *pause = PAUSE_MIN;
        // A release that happened without a subscription is found by trying again.
        self.topics.wake_all();
        loop {
            let quiet_until = self.clock.boot().plus(QUIET_MAX);
            let ask = tokio::select! {
                ask = self.asked.recv() => ask,
                () = self.clock.sleep_until(quiet_until) => {
                    subscriber.ping(self.step()).await?;
                    continue;
                }
                () = self.link.rebuilt() => return Ok(()),
                () = broken.notified() => return Ok(()),
            };
            match ask {
                Some(Ask::Listen(shard, listening)) => {
                    self.subscribe(&mut subscriber, shard).await?;
                    // The caller may have given up.
                    listening.send(()).ok();
                }
                Some(Ask::Idle(shard)) if self.topics.forget_idle(shard) => {
                    let channel = self.keys.channel(shard).to_string();
                    subscriber.unsubscribe(&channel, self.step()).await?;
                }
                Some(Ask::Idle(_)) => {}
                None => return Ok(()),
            }
        }
    }

    async fn subscribe(
        &self,
        subscriber: &mut Subscriber,
        shard: Shard,
    ) -> Result<(), BackendError> {
        let channel = self.keys.channel(shard).to_string();
        if !self.topics.is_acknowledged(shard) {
            subscriber.subscribe(&channel, self.step()).await?;
            self.topics.acknowledge(shard, channel);
        }
        Ok(())
    }

    fn step(&self) -> Limit<'_> {
        (STEP_TIMEOUT, &*self.clock)
    }
}

/// Reads a message on a channel, and wakes the waiters for its names.
fn hear(topics: &Topics, asks: &mpsc::Sender<Ask>, message: &[Value]) {
    let [Value::BulkString(channel), Value::BulkString(told)] = message else {
        return;
    };
    let channel = String::from_utf8_lossy(channel);
    let told = String::from_utf8_lossy(told);
    let released = told.split(TOPICS_APART);
    let idle = released.map(|topic| topics.wake(&channel, topic));
    if let Some(idle) = idle.last().flatten() {
        // A full queue of requests only means that the channel stays a little longer.
        asks.try_send(Ask::Idle(idle)).ok();
    }
}

fn channel_of(message: &[Value]) -> String {
    match message.first() {
        Some(Value::BulkString(channel)) => String::from_utf8_lossy(channel).into_owned(),
        _ => String::new(),
    }
}
