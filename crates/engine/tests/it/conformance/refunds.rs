//! A refund is to be done until the money has gone back for good.

use soldonce_core::{
    Amount, Booking, BookingId, Command, Effect, PaymentReport, PaymentState, Span,
};

use crate::ledgers::{TestLedger, booked, cancel, euro};

/// What is to be done next for a booking.
async fn open(test: &TestLedger, id: BookingId) -> Option<Effect> {
    test.advance_ms(2);
    let open = test.ledger.take_effects(Span::from_ms(1), 99).await;
    let mut effects = open.unwrap().into_iter().map(|open| open.effect);
    effects.find(|effect| effect.booking() == id)
}

/// A report of all of the money taken, and of how many times of it that went back and came.
fn report(booking: &Booking, (refunded, bounced): (i64, i64), settles: Option<Effect>) -> Command {
    let amount = booking.total();
    let times = |times: i64| Amount::from_minor(amount.minor() * times);
    let state = if refunded > bounced {
        PaymentState::Refunded
    } else {
        PaymentState::Captured
    };
    Command::Payment(Box::new(PaymentReport {
        captured: amount,
        refunded: times(refunded),
        bounced: times(bounced),
        settles,
        ..PaymentReport::whole(booking, euro(), state)
    }))
}

/// That it came back may be told by the report that settles its refund, or in one batch with that, before or after it.
pub(super) async fn money_that_comes_back_is_sent_again(test: TestLedger) {
    let event = test.event().await;
    for round in 0..6 {
        let buyer = format!("ann-{round}");
        let hold = test.hold(&event, &buyer, &["A-1"]).await.unwrap();
        let booking = booked(test.ask(test.checkout_command(&hold)).await).unwrap();
        let begun = Some(Effect::Authorise(booking.id));
        booked(test.ask(report(&booking, (0, 0), begun)).await).unwrap();
        booked(test.ask(cancel(booking.id)).await).unwrap();
        let refund = open(&test, booking.id).await;
        assert!(matches!(refund, Some(Effect::Refund { .. })), "{refund:?}");
        if round == 0 {
            booked(test.ask(report(&booking, (1, 1), refund)).await).unwrap();
        } else {
            let gone = test.ask(report(&booking, (1, 0), refund));
            let back = test.ask(report(&booking, (1, 1), None));
            // They enter the queue in this sequence.
            let told = if round % 2 == 0 {
                tokio::join!(gone, back)
            } else {
                let (back, gone) = tokio::join!(back, gone);
                (gone, back)
            };
            booked(told.0).unwrap();
            booked(told.1).unwrap();
        }
        assert_eq!(open(&test, booking.id).await, refund, "round {round}");
        booked(test.ask(report(&booking, (2, 1), refund)).await).unwrap();
        assert_eq!(open(&test, booking.id).await, None, "round {round}");
    }
}
