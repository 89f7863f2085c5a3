//! Grants any one of several names by a majority.

use std::time::Duration;

use super::Redlock;
use crate::backend::{Acquire, AcquireReply};
use crate::{Name, Refusal};

impl Redlock {
    /// Puts each name to the vote by itself, first the one that the owner holds already: nodes that
    /// pick for themselves would pick different names. A lost vote is withdrawn while the next goes
    /// on: with a node that does not answer each would take its whole time-out.
    pub(super) async fn grant_any(&self, command: &Acquire) -> AcquireReply {
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
            match reply {
                AcquireReply::Refused(refused) => {
                    refusal.conflicts.extend(refused.conflicts);
                    refusal.retry_after = refusal.retry_after.min(refused.retry_after);
                }
                reply @ (AcquireReply::Granted { .. }
                | AcquireReply::QueueFull
                | AcquireReply::CapReached
                | AcquireReply::Epoch(_)
                | AcquireReply::Failed(_)) => return with_picked(reply, name),
            }
        }
        self.withdrawn(withdrawals).await;
        let conflicts = &mut refusal.conflicts;
        conflicts.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        AcquireReply::Refused(refusal)
    }
}

/// Sets the picked name of a grant; other replies are unchanged.
fn with_picked(mut reply: AcquireReply, name: &Name) -> AcquireReply {
    if let AcquireReply::Granted { picked, .. } = &mut reply {
        *picked = Some(name.clone());
    }
    reply
}
