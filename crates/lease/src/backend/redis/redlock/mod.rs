//! A majority of independent Redis primaries. A token is minted before the vote; every node decides
//! by its own clock and by the scripts of the single server; this side counts. What is lost is
//! released on all nodes. `lease.md` 5.4.
//!
//! It assumes what no lock service can check: a majority of the nodes keeps its data and its clock.
//! The gate at the target protects where that fails.

mod doctor;
mod factory;
mod heal;
mod late;
mod nodes;
mod offers;
mod quorum;
mod renew_release;

use std::sync::Arc;
use std::time::Duration;

pub use factory::RedlockConfig;

use super::RedisBackend;
use super::reply::{self, Vote};
use super::role::ConnectionRole;
use crate::backend::{
    Acquire, AcquireReply, Backend, Facts, Finding, Fut, Holder, Kind, Names, Release,
    ReleaseReply, Renew, RenewReply, WakeStream,
};
use crate::{BackendError, BootTime, Clock, Entropy, FencingToken, Name, Refusal};
use late::{Late, LateVotes, Withdrawal};
use nodes::Nodes;
use offers::TokenOffers;
use quorum::{Outcome, Votes, majority};

/// Shortest ttl: drift and timeouts of several servers eat more of a lease than those of one.
const TTL_MIN: Duration = Duration::from_secs(2);

/// Longest sleep of a waiter between two tries: there is no wake-up.
const POLL: Duration = Duration::from_millis(250);

/// How often one acquire mints a token above the ones that the nodes remember. More than one is
/// needed only when another process is granted in between.
const TOKEN_ROUNDS: usize = 3;

/// Bounds of the wait for one node's vote.
const VOTE_MIN: Duration = Duration::from_millis(20);
const VOTE_MAX: Duration = Duration::from_millis(200);

/// When to ask again after the votes were split: after one to two times this span.
const SPLIT_RETRY: Duration = Duration::from_millis(25);

/// A backend on a majority of independent Redis primaries.
pub struct Redlock {
    nodes: Nodes,
    numbers: TokenOffers,
    late: Arc<LateVotes>,
    config: RedlockConfig,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl RedisBackend {
    async fn vote(
        &self,
        command: &Acquire,
        token: u64,
        least_age: Duration,
    ) -> Result<Vote, BackendError> {
        let within = (command.ttl / 50).clamp(VOTE_MIN, VOTE_MAX);
        let call = self.calls.vote(command, token, least_age);
        let answer = self.link.run(&call, ConnectionRole::Main, within).await?;
        reply::vote(answer, command)
    }
}

impl Redlock {
    async fn grant(&self, command: &Acquire) -> AcquireReply {
        let (reply, withdrawal) = self.decide(command).await;
        self.withdrawn(withdrawal).await;
        reply
    }

    /// Puts each name to the vote by itself, first the one that the owner holds already: nodes that
    /// pick for themselves would pick different names. A lost vote is withdrawn while the next goes
    /// on: with a node that does not answer each would take its whole time-out.
    async fn grant_any(&self, command: &Acquire) -> AcquireReply {
        let now = self.clock.boot();
        let only = |name: &Name| command.names.only(|one| one == name);
        let mut names: Vec<_> = command.names.as_slice().iter().collect();
        names.sort_by_key(|name| !self.numbers.is_held(command.owner, &only(name), now));
        let (mut refusal, mut withdrawals) = (Refusal::default(), Vec::new());
        refusal.retry_after = Duration::MAX;
        for name in names {
            let names = only(name);
            let one = Acquire {
                names,
                ..command.clone()
            };
            let (reply, withdrawal) = self.decide(&one).await;
            withdrawals.extend(withdrawal);
            if let AcquireReply::Refused(refused) = reply {
                refusal.conflicts.extend(refused.conflicts);
                refusal.retry_after = refusal.retry_after.min(refused.retry_after);
            } else {
                return with_picked(reply, name);
            }
        }
        self.withdrawn(withdrawals).await;
        let conflicts = &mut refusal.conflicts;
        conflicts.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        AcquireReply::Refused(refusal)
    }

    /// Lets the nodes vote, and starts the withdrawal of a lost vote.
    async fn decide(&self, command: &Acquire) -> (AcquireReply, Option<Withdrawal>) {
        if command.ttl > self.config.ttl_longest {
            return (AcquireReply::Failed(self.too_long(command.ttl)), None);
        }
        let mut above = command.floor.map_or(0, FencingToken::number);
        let mut last = None;
        for _ in 0..TOKEN_ROUNDS {
            let sent = self.clock.boot();
            let token = match self.numbers.offer(command, above, sent).await {
                Ok(token) => token,
                Err(error) => return (AcquireReply::Epoch(error), None),
            };
            let (outcome, late) = self.ballot(command, token).await;
            match outcome {
                Outcome::Won(reply) => {
                    self.note(command, &reply, sent);
                    self.watch(command, token, late);
                    return (reply, None);
                }
                Outcome::TooLow(highest) => {
                    self.withdrawn([self.withdraw(command, token, late)]).await;
                    above = above.max(highest.number());
                    last = None;
                }
                Outcome::Lost(reply) => {
                    return (reply, Some(self.withdraw(command, token, late)));
                }
                Outcome::Open => last = Some("the nodes were not asked to the end"),
            }
        }
        let why = last.unwrap_or("others were granted while each token was on its way");
        let unknown = BackendError::Unknown(why.to_owned());
        (AcquireReply::Failed(unknown), None)
    }

    /// Remembers the token of a grant, for a repeated acquire.
    fn note(&self, command: &Acquire, reply: &AcquireReply, sent: BootTime) {
        if let AcquireReply::Granted { token, granted, .. } = reply {
            let held = (token.number(), sent.plus(*granted));
            self.numbers.held(command.owner, &command.names, held);
        }
    }

    fn too_long(&self, ttl: Duration) -> BackendError {
        BackendError::Config(format!(
            "a ttl of {ttl:?} is above {:?}, the time that restarted nodes sit out; raise \
             RedlockConfig::ttl_longest in every process",
            self.config.ttl_longest
        ))
    }

    /// Asks all nodes for their votes until a majority granted or none can any more. Returns the
    /// outcome, and the votes that are still to come.
    async fn ballot(&self, command: &Acquire, token: u64) -> (Outcome, Late) {
        let (asked, least_age) = (Arc::new(command.clone()), self.config.sit_out);
        let mut answers = self.nodes.ask(|node| {
            let asked = Arc::clone(&asked);
            Box::pin(async move { node.vote(&asked, token, least_age).await })
        });
        let mut votes = Votes::of(self.nodes.len());
        let retry = self.split_retry();
        let mut outcome = Outcome::Open;
        while let Some((_, vote)) = answers.recv().await {
            votes.add(vote);
            outcome = votes.outcome(command, retry);
            if outcome != Outcome::Open {
                break;
            }
        }
        votes.tokens().for_each(|token| self.numbers.saw(token));
        (outcome, answers)
    }

    /// Draws a random pause, so that two that split the votes do not collide again at once.
    fn split_retry(&self) -> Duration {
        let mut bits = [0; 1];
        self.entropy.fill(&mut bits);
        SPLIT_RETRY + SPLIT_RETRY * u32::from(bits[0]) / 255
    }

    /// Reads the holder of `name` on a majority of the nodes; `None` if no owner has a majority.
    async fn holder(
        &self,
        group: Option<&Name>,
        name: &Name,
    ) -> Result<Option<Holder>, BackendError> {
        let asked = Arc::new((group.cloned(), name.clone()));
        let mut answers = self.nodes.ask(|node| {
            let asked = Arc::clone(&asked);
            Box::pin(async move { node.inspect(asked.0.as_ref(), &asked.1).await })
        });
        let (mut seen, mut failed): (Vec<Holder>, _) = (Vec::new(), Vec::new());
        while let Some((_, answer)) = answers.recv().await {
            match answer {
                Ok(holder) => seen.extend(holder),
                Err(error) => failed.push(error),
            }
            let same = |one: &Holder| {
                let alike = seen.iter().filter(|other| other.owner == one.owner);
                alike.count() >= majority(self.nodes.len())
            };
            if let Some(holder) = seen.iter().find(|holder| same(holder)) {
                return Ok(Some(holder.clone()));
            }
        }
        if self.nodes.len() - failed.len() < majority(self.nodes.len()) {
            let none = || BackendError::Unknown("no node answered".to_owned());
            return Err(failed.pop().unwrap_or_else(none));
        }
        Ok(None)
    }
}

/// Sets the picked name of a grant; other replies are unchanged.
fn with_picked(mut reply: AcquireReply, name: &Name) -> AcquireReply {
    if let AcquireReply::Granted { picked, .. } = &mut reply {
        *picked = Some(name.clone());
    }
    reply
}

impl Backend for Redlock {
    fn facts(&self) -> Facts {
        let mut facts = Facts::of(Kind::Redlock);
        facts.ttl_min = TTL_MIN;
        facts.ttl_max = facts.ttl_max.min(self.config.ttl_longest);
        facts.poll = POLL;
        facts
    }

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        if command.names.is_any() {
            return Box::pin(self.grant_any(command));
        }
        Box::pin(self.grant(command))
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
        Box::pin(self.renew_all(batch))
    }

    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
        Box::pin(self.release_all(batch))
    }

    fn inspect<'a>(
        &'a self,
        group: Option<&'a Name>,
        name: &'a Name,
    ) -> Fut<'a, Result<Option<Holder>, BackendError>> {
        Box::pin(self.holder(group, name))
    }

    fn wake<'a>(&'a self, _names: &'a Names) -> Fut<'a, WakeStream> {
        Box::pin(std::future::ready(WakeStream::silent()))
    }

    fn doctor(&self) -> Fut<'_, Vec<Finding>> {
        Box::pin(doctor::examine(self))
    }
}
