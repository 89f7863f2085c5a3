//! A primary is killed, or stops without a word: its names are granted again in time, tokens rise,
//! and who waits is woken by its successor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use soldonce_lease::backend::redis::RedisBackend;
use soldonce_lease::backend::{Backend, WakeStream};
use soldonce_lease::{BootTime, Clock, FencingToken, ManualClock, SystemClock};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::redis::FullCoverage;

use super::{BACK_WITHIN, Site, key_of, one, take_turn};
use crate::awake::Awake;
use crate::redis::site::{settings, until};

/// How a primary is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Killed,
    Hung,
}

/// Loses the primary of one name while it and a name of another primary are leased in turn, and
/// tells how long each was without a grant, by a clock that stands still with the machine. Tokens rise all the while.
async fn lose_a_primary(how: Loss, coverage: FullCoverage) -> [Duration; 2] {
    let (awake, mut settings) = (Awake::start(), settings());
    let clock = awake.clock();
    // One that hangs is noticed by a call without an answer.
    settings.call_timeout = Duration::from_millis(500);
    settings.clock = Arc::new(clock.clone());
    let mut site = Site::with(coverage, settings).await;
    let backend = Arc::clone(&site.backend);
    // The last primary, so that others can be asked about it while it hangs.
    let mut stricken = Turns::begin((&backend, &clock), site.name_on(2)).await;
    let mut bystander = Turns::begin((&backend, &clock), site.name_on(1)).await;
    let mut wakes = backend.wake(&one(&stricken.name)).await;
    let key = key_of(&stricken.name);
    let place = site.cluster.primary_of(&key).unwrap();
    site.cluster.fail_soon().unwrap();
    let node = site.cluster.node(place).unwrap();
    match how {
        Loss::Killed => node.kill().unwrap(),
        Loss::Hung => node.pause().unwrap(),
    }
    let back = AtomicBool::new(false);
    let replaced = || site.cluster.primary_of(&key).is_ok_and(|now| now != place);
    tokio::join!(
        stricken.take_until_back(replaced, &back),
        bystander.take_while_away(&back)
    );
    let name = stricken.name.clone();
    is_woken_by_the_successor(&site, &name, &mut wakes).await;
    if how == Loss::Hung {
        let rebuilt = site.rebuilt();
        let of_calls = |told: &String| told.starts_with("calls: shard ");
        assert!(rebuilt.iter().any(of_calls), "{rebuilt:?}");
        site.cluster.node(place).unwrap().resume().unwrap();
        // The old primary still believes for a moment that it is one.
        until("it knows its place", async || {
            stricken.take().await;
            (site.cluster.primary_of(&key).unwrap() != place).then_some(())
        })
        .await;
        until("the name is free again", async || {
            stricken.take().await.then_some(())
        })
        .await;
    }
    [stricken.longest, bystander.longest]
}

/// Who waited since before the loss hears of a release at the node that took over.
async fn is_woken_by_the_successor(site: &Site, name: &str, wakes: &mut WakeStream) {
    let key = key_of(name);
    until("it listens at the successor", async || {
        let place = site.cluster.primary_of(&key).ok()?;
        (site.listeners(place, name) > 0).then_some(())
    })
    .await;
    wakes.forget();
    until("a turn", async || take_turn(&site.backend, name).await).await;
    let woken = tokio::time::timeout(PATIENCE, wakes.next()).await;
    assert!(woken.is_ok(), "no word from the successor");
}

/// One name, leased and given back in turn.
struct Turns<'a> {
    backend: &'a RedisBackend,
    clock: &'a ManualClock,
    name: String,
    last: FencingToken,
    at: BootTime,
    /// Longest time without a grant.
    longest: Duration,
}

impl<'a> Turns<'a> {
    async fn begin((backend, clock): (&'a RedisBackend, &'a ManualClock), name: String) -> Self {
        let last = until("a first turn", async || take_turn(backend, &name).await).await;
        let (at, longest) = (clock.boot(), Duration::ZERO);
        Self {
            backend,
            clock,
            name,
            last,
            at,
            longest,
        }
    }

    async fn take(&mut self) -> bool {
        let token = take_turn(self.backend, &self.name).await;
        if let Some(token) = token {
            assert!(
                token > self.last,
                "{}: {token:?} after {:?}",
                self.name,
                self.last
            );
            self.last = token;
            self.longest = self.longest.max(self.away());
            self.at = self.clock.boot();
        }
        let pause = SystemClock.boot().plus(Duration::from_millis(20));
        SystemClock.sleep_until(pause).await;
        token.is_some()
    }

    fn away(&self) -> Duration {
        self.clock.boot().since(self.at)
    }

    async fn take_until_back(&mut self, replaced: impl Fn() -> bool, back: &AtomicBool) {
        while !self.take().await || !replaced() {
            assert!(
                self.away() < BACK_WITHIN,
                "{}: {:?}",
                self.name,
                self.away()
            );
        }
        back.store(true, Ordering::Relaxed);
    }

    async fn take_while_away(&mut self, back: &AtomicBool) {
        while !back.load(Ordering::Relaxed) {
            self.take().await;
        }
        self.longest = self.longest.max(self.away());
    }
}

fn assert_back([stricken, elsewhere]: [Duration; 2]) {
    assert!(stricken < BACK_WITHIN, "{stricken:?} without its primary");
    // Without full coverage the others hardly notice; with it they stop while the vote runs.
    assert!(
        elsewhere < stricken,
        "{elsewhere:?} elsewhere, {stricken:?} without its primary"
    );
}

#[tokio::test]
async fn a_killed_primary_is_replaced() {
    assert_back(lose_a_primary(Loss::Killed, FullCoverage::NotRequired).await);
}

#[tokio::test]
async fn a_hung_primary_is_replaced() {
    assert_back(lose_a_primary(Loss::Hung, FullCoverage::NotRequired).await);
}

#[tokio::test]
async fn a_killed_primary_is_replaced_with_full_coverage() {
    assert_back(lose_a_primary(Loss::Killed, FullCoverage::Required).await);
}

#[tokio::test]
async fn a_hung_primary_is_replaced_with_full_coverage() {
    assert_back(lose_a_primary(Loss::Hung, FullCoverage::Required).await);
}
