//! Bugs planted on purpose: the receiver must find each of them.

use soldonce_core::{Authority, Command, LineChoice};
use soldonce_engine::webhook::{DeliveryState, PlantedWebhook};
use soldonce_testkit::webhooks::Answer;

use super::rig::Rig;
use crate::ledgers::TestLedger;

/// What the receiver says of a sender with this bug, when the first attempt of the first message fails and
/// the next one is to come later than it would.
async fn found(bug: Option<PlantedWebhook>) -> Vec<String> {
    let test = TestLedger::memory_as(|ledger| match bug {
        Some(bug) => ledger.with_bug(bug),
        None => ledger,
    });
    let event = test.event().await;
    let mut rig = Rig::on(test).await;
    if let Some(bug) = bug {
        let sender = rig.engine.sender().unwrap().clone().with_bug(bug);
        rig.engine = super::rig::engine(&rig.test, sender).await;
    }
    let (endpoint, secret) = rig.endpoint().await;
    let later = Answer::Later(503, "60".to_owned());
    rig.receiver.answer_next_with("booking.confirmed", later);
    let hold = rig.test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let booking = rig.test.confirm(&hold).await.unwrap();
    let cancel = Command::Cancel {
        booking: booking.id,
        by: Authority::Staff,
        lines: LineChoice::All,
    };
    rig.test.ask(cancel).await.unwrap();
    rig.run();
    let all_over = |one: &soldonce_engine::webhook::Delivery| one.state != DeliveryState::Open;
    rig.until(&endpoint, 1_000, |log| log.iter().all(all_over))
        .await;
    let id = booking.id.to_string();
    let told = [(id.clone(), "booking.confirmed"), (id, "booking.cancelled")];
    rig.violations(&[&secret], &told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_planted_bug_is_found() {
    assert_eq!(found(None).await, [""; 0]);
    for bug in PlantedWebhook::ALL {
        let found = found(Some(bug)).await;
        assert!(!found.is_empty(), "{bug:?} was not found");
    }
}
