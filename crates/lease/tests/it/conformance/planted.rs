//! The suite must see bugs: each wrong backend here is caught by the law that forbids it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soldonce_lease::backend::{
    Acquire, AcquireReply, Backend, Facts, Finding, Fut, Holder, Memory, Names, Release,
    ReleaseReply, Renew, RenewReply, State, WakeStream,
};
use soldonce_lease::{BackendError, FencingToken, ManualClock, Name, Owner};

use super::memory::Virtual;
use super::{laws, random, times};
use crate::requests;

/// What is wrong with a backend.
#[derive(Clone, Copy, Debug)]
enum Bug {
    /// Release deletes what is there.
    BlindDelete,
    /// Renew sets what is not there.
    RenewSets,
    /// Tokens begin again after a restart.
    EpochReuse,
    /// Renew asks for the owner alone.
    RenewByOwner,
    /// A refused group keeps what it got.
    KeepsHalf,
    /// Only the first conflict is told.
    FirstConflict,
    /// Of several other owners the lowest token is told.
    LowestOther,
    /// `<=` for `<`: a grant still lives at the instant of its expiry.
    LateExpiry,
    /// Count and grant are two commands: a refused owner is granted with the token drawn before.
    CountsBefore,
}

struct Wrong {
    right: Memory,
    bug: Bug,
    /// What refused owners drew.
    drawn: Mutex<HashMap<Owner, FencingToken>>,
}

impl Wrong {
    fn bench(bug: Bug) -> Virtual {
        let clock = ManualClock::at(0);
        let right = Memory::new(Arc::new(clock.clone()));
        let drawn = Mutex::default();
        let backend = Arc::new(Wrong { right, bug, drawn });
        Virtual { clock, backend }
    }

    async fn holder(&self, names: &Names) -> Option<Holder> {
        let name = names.as_slice().first().unwrap();
        self.right.inspect(names.group(), name).await.unwrap()
    }

    async fn renew_wrongly(&self, ask: &Renew) -> RenewReply {
        let mut asked = ask.clone();
        if matches!(self.bug, Bug::RenewByOwner)
            && let Some(holder) = self.holder(&ask.names).await
        {
            asked.token = holder.token;
        }
        let reply = self.right.renew(&[asked]).await.remove(0);
        if let (Bug::LowestOther, RenewReply::Taken { .. }) = (self.bug, &reply)
            && let Some(by) = self.lowest(&ask.names).await
        {
            return RenewReply::Taken { by };
        }
        if matches!((self.bug, &reply), (Bug::RenewSets, RenewReply::Gone)) {
            let acquire = requests::ask(ask.names.clone(), ask.owner, ask.ttl);
            self.right.acquire(&acquire).await;
            return RenewReply::Renewed { granted: ask.ttl };
        }
        reply
    }

    /// The lowest token of the names' holders.
    async fn lowest(&self, names: &Names) -> Option<FencingToken> {
        let mut lowest: Option<FencingToken> = None;
        for name in names.as_slice() {
            let holder = self.right.inspect(names.group(), name).await.unwrap();
            let token = holder.map(|holder| holder.token);
            lowest = lowest.into_iter().chain(token).min();
        }
        lowest
    }

    async fn release_wrongly(&self, ask: &Release) -> ReleaseReply {
        let mut asked = ask.clone();
        if matches!(self.bug, Bug::BlindDelete)
            && let Some(holder) = self.holder(&ask.names).await
        {
            (asked.owner, asked.token) = (holder.owner, None);
        }
        let reply = self.right.release(&[asked]).await.remove(0);
        if matches!(self.bug, Bug::EpochReuse) {
            self.right.restore(State::default());
        }
        reply
    }

    async fn acquire_wrongly(&self, ask: &Acquire) -> AcquireReply {
        let mut asked = ask.clone();
        if matches!(self.bug, Bug::LateExpiry) {
            asked.ttl += Duration::from_nanos(1);
        }
        let mut reply = self.right.acquire(&asked).await;
        if let AcquireReply::Granted { granted, token, .. } = &mut reply {
            *granted = ask.ttl;
            *token = self
                .drawn
                .lock()
                .unwrap()
                .remove(&ask.owner)
                .unwrap_or(*token);
        }
        let AcquireReply::Refused(refusal) = &mut reply else {
            return reply;
        };
        match self.bug {
            Bug::FirstConflict => refusal.conflicts.truncate(1),
            Bug::KeepsHalf => self.keep_half(ask).await,
            Bug::CountsBefore => {
                let newest = refusal
                    .conflicts
                    .iter()
                    .map(|conflict| conflict.token)
                    .max();
                let mut drawn = self.drawn.lock().unwrap();
                drawn.extend(newest.map(|token| (ask.owner, token)));
            }
            Bug::BlindDelete
            | Bug::RenewSets
            | Bug::EpochReuse
            | Bug::RenewByOwner
            | Bug::LateExpiry
            | Bug::LowestOther => {}
        }
        reply
    }

    async fn keep_half(&self, ask: &Acquire) {
        let group = ask.names.group().expect("a group");
        for name in ask.names.as_slice() {
            let names = Names::of_group(group.clone(), vec![name.clone()]);
            let half = Acquire {
                names,
                ..ask.clone()
            };
            self.right.acquire(&half).await;
        }
    }
}

impl Backend for Wrong {
    pass_on!(facts inspect wake doctor);

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        Box::pin(self.acquire_wrongly(command))
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
        Box::pin(async move {
            let mut replies = Vec::new();
            for ask in batch {
                replies.push(self.renew_wrongly(ask).await);
            }
            replies
        })
    }

    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
        Box::pin(async move {
            let mut replies = Vec::new();
            for ask in batch {
                replies.push(self.release_wrongly(ask).await);
            }
            replies
        })
    }
}

/// Asserts that the law fails, and fails by its own words.
pub(super) async fn caught(law: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(law);
    let outcome = tasks.join_next().await.expect("one task");
    let error = outcome.expect_err("the planted bug was not caught");
    assert!(error.is_panic(), "{error}");
}

macro_rules! catches {
    ($($test:ident: $bug:expr => $law:path;)+) => {
        $(
            #[tokio::test]
            async fn $test() {
                caught(async {
                    let bench: Virtual = $bug;
                    $law(&bench).await;
                })
                .await;
            }
        )+
    };
}

catches! {
    catches_blind_delete: Wrong::bench(Bug::BlindDelete) => laws::b5_release_needs_owner_and_token;
    catches_renew_that_sets: Wrong::bench(Bug::RenewSets) => laws::b4_renew_never_creates;
    catches_renew_by_owner: Wrong::bench(Bug::RenewByOwner) => laws::b4_renew_needs_owner_and_token;
    catches_epoch_reuse: Wrong::bench(Bug::EpochReuse) => times::b6_tokens_rise;
    catches_a_count_before_the_grant: Wrong::bench(Bug::CountsBefore) => times::b6_a_refusal_draws_no_token;
    catches_half_a_group: Wrong::bench(Bug::KeepsHalf) => laws::b2_all_names_or_none;
    catches_a_hidden_conflict: Wrong::bench(Bug::FirstConflict) => laws::b9_every_conflict_is_listed;
    catches_a_lower_owner: Wrong::bench(Bug::LowestOther) => laws::of_several_others_the_highest_is_told;
    catches_late_expiry: Wrong::bench(Bug::LateExpiry) => times::b8_a_grant_lives_as_long_as_answered;
    random_commands_catch_a_lower_owner: Wrong::bench(Bug::LowestOther) => unsaved;
    random_commands_catch_blind_delete: Wrong::bench(Bug::BlindDelete) => unsaved;
}

/// The random commands without saving what they find: the bug is planted.
async fn unsaved(bench: &Virtual) {
    random::compare(bench, None).await;
}
