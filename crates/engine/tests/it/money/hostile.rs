//! Many buyers at once with a provider that goes wrong all the time: calls fail before and after
//! their effect, notices come twice, late, wrong, forged or never.
//!
//! `SOLDONCE_HOSTILE_TIMES=20 cargo test -p soldonce-engine --all-features --test it -- money::hostile`
//! is twenty times as many runs, each with a seed of its own.

use std::ops::Range;
use std::sync::Arc;

use fake_stripe::Plan;
use soldonce_core::{BookingId, BookingState, LineState};
use soldonce_engine::{EngineError, NamedUnits};
use tokio::task::JoinSet;

use super::rig::{PRICE, Place, Rig, Store, in_time};

const CARDS: [&str; 4] = [
    "pm_card_visa",
    "pm_card_chargeDeclined",
    "pm_card_declinedAtFirst",
    "pm_card_mastercard",
];
const SEATS: [&str; 5] = ["A-1", "A-2", "A-3", "A-4", "A-5"];
const BUYERS: usize = 15;

/// Holds, pays, sometimes gives up, sometimes cancels. Gives the bookings that were begun.
async fn buy(rig: Arc<Rig>, n: usize) -> Vec<BookingId> {
    let seat = SEATS[n % SEATS.len()];
    let Ok(hold) = rig.hold(&format!("buyer-{n}"), &[seat]).await else {
        return Vec::new();
    };
    let paying = match rig.checkout(hold).await {
        Ok(paying) => paying,
        // The provider refused it for good.
        Err(EngineError::Provider(_)) => return Vec::new(),
        Err(error) => panic!("{error}"),
    };
    match n % 7 {
        // The buyer is gone before the payment, or during it.
        3 => drop(rig.engine.release(&rig.call(), hold, None).await),
        5 => drop(rig.engine.abandon(&rig.call(), hold, None, None).await),
        _ => {}
    }
    // An intent may be cancelled meanwhile.
    let card = CARDS[n % CARDS.len()];
    rig.fake.pay(&paying.intent, card).await.ok();
    rig.take_notices().await;
    if card == "pm_card_declinedAtFirst" {
        rig.fake.pay(&paying.intent, card).await.ok();
        rig.take_notices().await;
    }
    if card == "pm_card_chargeDeclined" {
        drop(rig.engine.abandon(&rig.call(), hold, None, None).await);
    }
    if n.is_multiple_of(4) {
        let all = NamedUnits::default();
        let cancelled = rig.engine.cancel(&rig.call(), paying.booking, &all).await;
        drop(cancelled);
    }
    vec![paying.booking]
}

async fn run(place: &Arc<Place>, seed: u64) {
    let mut rig = Rig::at(Arc::clone(place), &format!("hostile-{seed}"), |_| {}).await;
    rig.fake.plan(Plan::hostile(seed));
    rig.run_outbox();
    let rig = Arc::new(rig);
    let mut buyers = JoinSet::new();
    for n in 0..BUYERS {
        buyers.spawn(buy(Arc::clone(&rig), n));
    }
    let begun = in_time("the buyers", buyers.join_all()).await;
    let begun = begun.unwrap().concat();
    assert!(begun.len() >= SEATS.len(), "{seed}: {begun:?}");
    rig.settle().await;
    let mut sold = 0;
    for id in begun {
        let booking = rig.booking(id).await;
        assert_ne!(booking.state, BookingState::PendingPayment);
        assert_ne!(booking.state, BookingState::NeedsRefund);
        assert_eq!(rig.differences(&booking).await, [""; 0], "{seed}");
        let lines = booking.lines.iter();
        let own = lines.filter(|line| line.state == LineState::Sold).count();
        sold += PRICE * i64::try_from(own).unwrap();
    }
    assert_eq!(rig.kept(), sold, "{seed}: to the cent");
    assert_eq!(rig.reserved(), 0, "{seed}: nothing is left open");
}

/// Further from each other than the seeds of all tests of this file.
const NEXT_TIME: u64 = 1_000;

async fn run_all(store: Store, seeds: Range<u64>) {
    let place = Place::new(store).await;
    let times = std::env::var_os("SOLDONCE_HOSTILE_TIMES");
    let times = times.map_or(1, |times| times.to_str().unwrap().parse().unwrap());
    for time in 0..times {
        for seed in seeds.clone() {
            run(&place, time * NEXT_TIME + seed).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_is_taken_at_once_is_right_under_every_fault() {
    let place = Place::paid_at_once(Store::Sqlite).await;
    for seed in 250..290 {
        run(&place, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_money_is_right_under_every_fault_on_sqlite() {
    run_all(Store::Sqlite, 0..220).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_money_is_right_under_every_fault_on_postgres() {
    run_all(Store::Postgres, 220..250).await;
}
