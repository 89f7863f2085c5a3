//! A provider that refuses again and again: what is asked of it, and what is not forgotten meanwhile.

use soldonce_core::{BookingState, PaymentState};
use soldonce_engine::payment::ProviderError;

use super::rig::{Rig, Store};

fn refused() -> ProviderError {
    ProviderError::Refused {
        status: 400,
        code: "charge_disputed".to_owned(),
        message: String::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_refund_is_asked_for_once_in_each_try() {
    let mut rig = Rig::on(Store::Sqlite, |_| {}).await;
    let (_, paying) = rig.begun("ann", &["A-1"]).await;
    rig.pay(&paying, "pm_card_visa").await;
    rig.run_outbox();
    rig.settle().await;
    let unknown = ProviderError::Unknown("no answer".to_owned());
    let answers = [refused(), refused(), unknown.clone(), unknown, refused()];
    rig.place.refunds.to_come.lock().unwrap().extend(answers);
    rig.cancel_all(paying.booking).await;
    rig.until_paid_as(paying.booking, PaymentState::Refunded)
        .await;
    let keys = rig.place.refunds.keys.lock().unwrap().clone();
    let rounds: Vec<&str> = keys
        .iter()
        .map(|key| key.rsplit('-').next().unwrap())
        .collect();
    assert_eq!(
        rounds,
        ["0", "1", "2", "2", "2", "3"],
        "another key after a refusal, the same when the outcome is unknown"
    );
    assert_eq!(rig.kept(), 0);
    let state = rig.booking(paying.booking).await.state;
    assert_eq!(state, BookingState::Cancelled);
}

/// What was refused under a key is refused under it again, for a day.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_passes_keys_that_were_refused_before() {
    let rig = Rig::on(Store::Sqlite, |_| {}).await;
    let (_, paying) = rig.begun("ann", &["A-1"]).await;
    rig.pay(&paying, "pm_card_visa").await;
    rig.settle().await;
    rig.place
        .refunds
        .to_come
        .lock()
        .unwrap()
        .extend([refused(), refused()]);
    rig.cancel_all(paying.booking).await;
    let stuck = loop {
        let found = rig.mismatches().await.pop();
        if let Some(found) = found {
            break found;
        }
    };
    rig.engine.repair(&stuck).await.unwrap();
    assert_eq!(rig.place.refunds.keys.lock().unwrap().len(), 3);
    assert_eq!(rig.kept(), 0);
}
