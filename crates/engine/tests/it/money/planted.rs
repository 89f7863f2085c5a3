//! The teeth of these rigs: bugs planted in the rules of money, each of which one of them must see,
//! by what is wrong in the end or by money that never comes to rest.

use soldonce_core::Planted;
use tokio::task::JoinSet;

use super::rig::Place;
use super::{deaths, walks};

/// A bug that only delays or loses money ends a rig by a panic.
async fn sees(rig: impl Future<Output = bool> + Send + 'static) -> bool {
    let mut rigs = JoinSet::new();
    rigs.spawn(rig);
    rigs.join_next().await.unwrap().unwrap_or(true)
}

async fn is_seen(bug: Planted) -> bool {
    let place = Place::planted(bug);
    if sees(async move {
        !deaths::tell(&place, "a-story", "", 0)
            .await
            .wrongs
            .is_empty()
    })
    .await
    {
        return true;
    }
    let place = Place::planted(bug);
    if sees(async move { !walks::late_money_buys(place).await }).await {
        return true;
    }
    let place = Place::planted(bug);
    if sees(async move { !walks::moves_up(place).await }).await {
        return true;
    }
    let place = Place::planted(bug);
    sees(async move { !walks::old_notices_change_nothing(place).await }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_planted_bug_of_the_money_is_seen() {
    for bug in Planted::MONEY {
        assert!(is_seen(bug).await, "{bug:?} was missed");
    }
}
