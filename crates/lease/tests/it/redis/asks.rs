//! The ask of a fence record: an epoch is installed only for the ask that stands.

use std::sync::Arc;

use soldonce_lease::backend::{Acquire, Fencing, Fut};
use soldonce_lease::{FenceError, FenceKind, FenceSource, FencingToken};
use soldonce_testkit::redis::Redis;
use tokio::sync::{Notify, oneshot};

use super::epochs::token_of;
use super::site::{Numbers, Site, anchored, ask, connect, granted, one, release, settings};

/// A source that answers when it is told to.
struct Slow {
    asked: Notify,
    answer: tokio::sync::Mutex<Option<oneshot::Receiver<u32>>>,
    then: Arc<Numbers>,
}

impl FenceSource for Slow {
    fn next<'a>(
        &'a self,
        _: FenceKind,
        namespace: &'a str,
        above: u64,
    ) -> Fut<'a, Result<u64, FenceError>> {
        Box::pin(async move {
            self.asked.notify_one();
            match self.answer.lock().await.take() {
                Some(answer) => Ok(answer.await.unwrap().into()),
                None => self.then.next(FenceKind::Epoch, namespace, above).await,
            }
        })
    }
}

/// An epoch drawn before a second loss of the data is not installed after it: another process may
/// have used higher ones in between, and no record is left to tell.
#[tokio::test]
pub(super) async fn an_epoch_that_was_overtaken_on_its_way_is_not_installed() {
    let redis = Redis::start().unwrap();
    let (give, answer) = oneshot::channel();
    let numbers = Numbers::from(9);
    let slow = Arc::new(Slow {
        asked: Notify::new(),
        answer: tokio::sync::Mutex::new(Some(answer)),
        then: Arc::clone(&numbers),
    });
    let mut slow_settings = settings();
    slow_settings.fencing = Fencing::Source(Arc::clone(&slow) as Arc<dyn FenceSource>);
    let slow_backend = connect(&redis, slow_settings).await;
    let late = ask(one("a"));
    let mut waiting = tokio::task::JoinSet::new();
    waiting.spawn(async move { granted(&slow_backend, &late).await });
    slow.asked.notified().await;
    let quick = anchored(&redis, &numbers).await;
    let high = token_of(&quick, "a").await;
    redis.cli(&["FLUSHALL"]).unwrap();
    give.send(3).unwrap();
    let token = waiting.join_next().await.unwrap().unwrap();
    assert!(token > high, "{token:?} after {high:?}");
}

/// A floor above the record's epoch asks for another, and the old one serves others meanwhile.
#[tokio::test]
pub(super) async fn an_ask_stands_while_others_are_granted() {
    let redis = Redis::start().unwrap();
    let quick = anchored(&redis, &Numbers::from(1)).await;
    let before = token_of(&quick, "a").await.epoch();
    let (give, answer) = oneshot::channel();
    let slow = Arc::new(Slow {
        asked: Notify::new(),
        answer: tokio::sync::Mutex::new(Some(answer)),
        then: Numbers::from(20),
    });
    let mut slow_settings = settings();
    slow_settings.fencing = Fencing::Source(Arc::clone(&slow) as Arc<dyn FenceSource>);
    let slow_backend = connect(&redis, slow_settings).await;
    let high = Acquire {
        floor: FencingToken::from_parts(7, 1),
        ..ask(one("a"))
    };
    let mut waiting = tokio::task::JoinSet::new();
    waiting.spawn(async move { granted(&slow_backend, &high).await });
    slow.asked.notified().await;
    let mut labelled = ask(one("a"));
    labelled.meta = "host=db-1".into();
    for mine in [ask(one("a")), labelled] {
        let token = granted(&quick, &mine).await;
        assert_eq!(token.epoch(), before, "the record serves");
        release(&quick, &mine, Some(token)).await;
    }
    give.send(9).unwrap();
    let token = waiting.join_next().await.unwrap().unwrap();
    assert_eq!(token.epoch(), 9, "the first epoch that was drawn");
}

/// A server that was asked, and restarted before the epoch came, asks anew: else it would refuse
/// every epoch for the ask that no longer stands.
#[tokio::test]
pub(super) async fn an_ask_of_the_server_before_is_forgotten() {
    let site = Site::start().await;
    let before = token_of(&site.backend, "a").await;
    let record = site.redis.cli(&["KEYS", "sl:*:f"]).unwrap();
    let another = "f".repeat(40);
    let asked = format!("{another}:1.1");
    let stale = format!("{}|{another}|{asked}", &before.to_string()[..16]);
    site.redis.cli(&["SET", &record, &stale]).unwrap();
    assert!(token_of(&site.backend, "a").await.epoch() > before.epoch());
}

/// The last guard: sources never give a number twice, and an ask does not outlive an install.
#[tokio::test]
#[cfg(all(feature = "test-kit", debug_assertions))]
pub(super) async fn a_record_refuses_an_epoch_that_is_not_higher() {
    let site = Site::start().await;
    let held = token_of(&site.backend, "a").await;
    let record = site.redis.cli(&["KEYS", "sl:*:f"]).unwrap();
    let server = site.redis.info("master_replid").unwrap().unwrap();
    let asked = format!("{server}:1.1");
    let shown = format!("|{asked}");
    site.redis.cli(&["APPEND", &record, &shown]).unwrap();
    let script = crate::planting::script("install.lua");
    let same = held.epoch().to_string();
    let install = ["EVAL", &script, "1", &record, &same, &asked];
    let told = site.redis.cli(&install).unwrap();
    assert_eq!(told, format!("0\n{same}"));
    assert!(token_of(&site.backend, "a").await > held);
}
