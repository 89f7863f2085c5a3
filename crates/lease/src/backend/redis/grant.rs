//! One acquire: the script, the epochs that it needs, and the replicas that have its grant.

use std::time::Duration;

use super::RedisBackend;
use super::call;
use super::keys::Shard;
use super::reply::{self, Answer};
use super::role::ConnectionRole;
use crate::backend::{Acquire, AcquireReply, Durability};
use crate::{BackendError, FenceError, Notice, NoticeKind};

/// How often one acquire installs an epoch and asks again. More than one is needed only when
/// another process installs at the same moment, or the server is flushed once more.
const EPOCH_ROUNDS: usize = 4;

/// Tells whether it asks for one name and nothing else: such acquires share a script.
fn is_plain(command: &Acquire) -> bool {
    let asks_more = command.fair || command.waiter.is_some() || !command.meta.is_empty();
    command.names.as_slice().len() == 1 && !asks_more
}

impl RedisBackend {
    pub(super) async fn grant(&self, command: &Acquire) -> AcquireReply {
        for _ in 0..EPOCH_ROUNDS {
            let answer = match command.durability {
                Durability::Primary => self.ask(command).await,
                // `WAIT` looks at the writes of its own connection, so these travel alone.
                Durability::Replicas { .. } => {
                    Box::pin(self.alone(command, ConnectionRole::Durable)).await
                }
            };
            let installed = match answer {
                Ok(Answer::Reply(reply)) => match command.durability {
                    Durability::Primary => return reply,
                    Durability::Replicas { n, within } => {
                        return Box::pin(self.replicated(reply, command, (n, within))).await;
                    }
                },
                Ok(Answer::Epoch { above, ask }) => {
                    Box::pin(self.install(command, above, &ask)).await
                }
                Ok(Answer::Unusual) => Err(AcquireReply::Failed(reply::odd())),
                Err(error) => Err(AcquireReply::Failed(error)),
            };
            if let Err(reply) = installed {
                return reply;
            }
        }
        let why = "the fence record changed while each epoch was on its way";
        AcquireReply::Epoch(FenceError::Unavailable(why.to_owned()))
    }

    /// Raises the minimum token of `ask` above the epochs that this process knows.
    fn above_floor(&self, mut ask: Acquire) -> Acquire {
        ask.floor = ask.floor.max(self.epochs.floor());
        ask
    }

    /// Asks the script for plain acquires if it may decide, else the one for every kind.
    async fn ask(&self, command: &Acquire) -> Result<Answer, BackendError> {
        if is_plain(command) {
            let answer = self.acquires.send(self.above_floor(command.clone())).await;
            if !matches!(answer, Ok(Answer::Unusual)) {
                return answer;
            }
        }
        // What few acquires need is boxed: each carries the room for all that is not.
        Box::pin(self.alone(command, ConnectionRole::Main)).await
    }

    /// Asks the script that serves every kind of acquire.
    async fn alone(&self, command: &Acquire, role: ConnectionRole) -> Result<Answer, BackendError> {
        let ask = self.above_floor(command.clone());
        self.releases.flush(&ask.names);
        let call = self.calls.acquire(&ask);
        let answer = self.link.run(&call, role, self.call_timeout).await?;
        reply::acquire(answer, &ask)
    }

    /// Draws an epoch and installs it. After any answer, even a lost one, the caller asks again.
    async fn install(&self, command: &Acquire, above: u32, ask: &str) -> Result<(), AcquireReply> {
        let epoch = self.epochs.above(above).await;
        let epoch = epoch.map_err(AcquireReply::Epoch)?;
        let call = self.calls.install(command, epoch, ask);
        let limit = self.call_timeout;
        let answer = self.link.run(&call, ConnectionRole::Main, limit).await;
        match answer.and_then(reply::install) {
            Ok(installed) => {
                let current = installed.unwrap_or(epoch);
                if installed.is_none() {
                    self.tell_installed(self.keys.shard_of_names(&command.names), epoch);
                }
                self.epochs.accepts(current).map_err(AcquireReply::Epoch)
            }
            Err(BackendError::Unknown(_)) => Ok(()),
            Err(error) => Err(AcquireReply::Failed(error)),
        }
    }

    fn tell_installed(&self, shard: Shard, epoch: u32) {
        tracing::info!(shard = shard.index(), epoch, "epoch installed");
        let reason = || format!("epoch {epoch} begins on shard {}", shard.index());
        let kind = self.facts.kind;
        self.notices
            .tell(|| Notice::of(NoticeKind::EpochInstalled, kind).because(reason()));
    }

    /// Adds to a grant how many replicas have it. Too few never undo it.
    async fn replicated(
        &self,
        mut reply: AcquireReply,
        command: &Acquire,
        (n, within): (u32, Duration),
    ) -> AcquireReply {
        if !matches!(reply, AcquireReply::Granted { .. }) {
            return reply;
        }
        let wait = call::wait(n, within);
        let wait = (self.keys.shard_of_names(&command.names), &wait);
        let limit = within.saturating_add(self.call_timeout);
        let counting = self.link.plain(wait, ConnectionRole::Durable, limit);
        let count = counting.await.ok().and_then(|value| reply::count(&value));
        if let AcquireReply::Granted { replicas, .. } = &mut reply {
            *replicas = Some(count.unwrap_or(0));
        }
        reply
    }
}
