//! What only a ledger on disk can be asked: restart, damage, a second process, a failing commit.

use crate::ledgers::TestLedger;

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_survives_a_restart() {
    let mut test = TestLedger::sqlite();
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
    let booking = test.confirm(&hold).await.unwrap();
    let kept = test.hold(&event, "bob", &["B-1"]).await.unwrap();
    test.restart().await;
    assert_eq!(
        test.ledger.booking(booking.id).await.unwrap(),
        Some(booking)
    );
    assert_eq!(test.ledger.hold(kept.id).await.unwrap(), Some(kept.clone()));
    assert!(test.hold(&event, "eve", &["A-1"]).await.is_err());
    test.confirm(&kept).await.unwrap();
}
