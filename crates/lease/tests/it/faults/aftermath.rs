//! What is left after a request was hurt: who holds, holds alone, what arrives late changes nothing,
//! no orphan stays, no second token was minted.

use std::time::Duration;

use soldonce_lease::{FencingToken, Lease};
use soldonce_testkit::chaos::FaultProxy;

use super::requests::{Call, Harm};
use super::site::Kind;
use super::trial::{TTL, Trial};
use super::{PATIENCE, within, within_by};

/// When nothing may be left (`lease.md` 11.6): half the ttl and a second; five more for a machine that is busy.
const CLEAN_WITHIN: Duration = Duration::from_secs(16);
const _: () = assert!(CLEAN_WITHIN.as_millis() == TTL.as_millis() / 2 + 6_000);

impl Trial {
    /// Who holds a lease after the fault holds it alone, and with the token that the server has.
    pub(super) async fn is_used_by_nobody_else(&self, held: &[Lease]) {
        for lease in held {
            let life = lease.verify().await;
            assert!(life.is_ok_and(|life| !life.is_zero()), "{self}");
        }
        // Of many, it may be any that were granted.
        let (true, [lease]) = (self.row.is_single(), held) else {
            return;
        };
        let seen = self.witness.lease("n:0").inspect().await.unwrap();
        let seen = seen.map(|holder| holder.token.number());
        assert_eq!(
            seen,
            lease.token_for_logs().map(FencingToken::number),
            "{self}"
        );
        let other = self.witness.lease("n:0").try_acquire().await;
        let refused = matches!(other, Ok(None));
        assert!(refused, "{self}: {other:?}");
    }

    /// The request arrives after all: nothing that is another's by then may change.
    pub(super) async fn let_it_arrive(&self, held: Vec<Lease>, before: &[u64]) {
        release_all(held).await;
        let mut other = None;
        if !self.row.acquires() {
            other = Some(self.take_over().await);
        } else if self.makes_an_orphan() {
            // The first delete is answered, so that only the second one can find the orphan.
            let deleted = || self.site.served().first() > before.first();
            within(PATIENCE, format!("the first delete of {self}"), deleted).await;
        }
        let requests: Vec<usize> = self.proxies.iter().map(FaultProxy::requests).collect();
        self.proxies.iter().for_each(FaultProxy::heal);
        let arrived = || {
            let mut counts = self.proxies.iter().zip(&requests);
            counts.all(|(proxy, before)| proxy.requests() > *before)
        };
        within(
            PATIENCE,
            format!("the stuck request of {self} arrives"),
            arrived,
        )
        .await;
        let Some(other) = other else {
            let seen = || !self.makes_an_orphan() || !self.site.left().is_empty();
            return within(PATIENCE, format!("{self} makes an orphan"), seen).await;
        };
        for _ in 0..10 {
            assert!(other.verify().await.is_ok(), "{self}");
        }
        other.release().await.unwrap();
    }

    /// Whether what was stuck is granted for sure when it arrives. A node of a Redlock is released behind
    /// each vote, on the same connection; an epoch may be stuck without an acquire behind it; and
    /// PostgreSQL was asked again by another connection.
    fn makes_an_orphan(&self) -> bool {
        self.row.on == Kind::Redis && matches!(self.row.call, Call::Acquire | Call::AcquireMany)
    }

    /// Takes the name by force.
    async fn take_over(&self) -> Lease {
        let name = self.witness.lease("n:0");
        if let Some(holder) = name.inspect().await.unwrap() {
            let broken = name.force_release(holder.token, "test").await;
            broken.unwrap();
        }
        let free = name.ttl(TTL).manual_renewal();
        free.try_acquire().await.unwrap().unwrap()
    }

    pub(super) async fn comes_clean(&self) {
        if self.row.call == Call::Resume || self.row.call == Call::ForceRelease {
            // A ticket is good until its ttl: that is no orphan.
            self.take_over().await.release().await.unwrap();
        }
        let (clock, clean) = (self.awake.clock(), || self.site.left().is_empty());
        let what = format!("{self} leaves nothing");
        within_by(&clock, CLEAN_WITHIN, what, clean).await;
    }

    /// The token of a grant that is given back at once.
    pub(super) async fn next_token(&self) -> FencingToken {
        let lease = self
            .witness
            .lease("next")
            .ttl(TTL)
            .try_acquire()
            .await
            .unwrap()
            .unwrap();
        let token = lease.token().unwrap();
        lease.release().await.unwrap();
        token
    }

    /// A request that was asked for again, or ran twice, is one grant: tokens are counted.
    pub(super) async fn minted_no_second_token(&self) {
        let next = self.next_token().await;
        assert!(next.number() > self.first.number(), "{self}");
        // An epoch begins in between, a vote has its token before it is counted, and what was stuck
        // is granted anew after its release.
        // So is what PostgreSQL was asked by a second connection, if the release behind it overtakes it.
        let overtaken = self.row.on == Kind::Postgres && self.row.acquires();
        let overtaken = overtaken && self.harm == Harm::LostAgain;
        let uncounted = self.row.on == Kind::Redlock || self.harm == Harm::Stuck || overtaken;
        if uncounted || self.row.call == Call::Install {
            return;
        }
        let taken_over = matches!(
            self.row.call,
            Call::Resume | Call::ForceRelease | Call::Wait
        );
        // One warmed up, and one came now.
        let grants = self.names().len() + usize::from(taken_over) + 2;
        let minted = usize::try_from(next.number() - self.first.number()).unwrap();
        assert!(
            minted <= grants,
            "{self}: {minted} tokens for {grants} grants"
        );
    }
}

pub(super) async fn release_all(held: Vec<Lease>) {
    for lease in held {
        // What the fault made of it is the trial's question, not this one's.
        lease.release().await.ok();
    }
}
