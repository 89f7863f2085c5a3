//! An event that is over is dropped for good, and nothing else is touched.

use std::sync::Arc;

use soldonce_core::limits::DROP_AFTER_MS_MIN;
use soldonce_core::{
    Booking, Command, Effect, Event, EventChange, Origin, PaymentState, Rejection, Span, Timestamp,
};
use soldonce_engine::ledger::sqlite::verify::verify;

use crate::ledgers::{HALL, TestLedger, booked, busy, held, holder, key, new_event, on, verified};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

async fn drop_event(test: &TestLedger, event: &Event) -> Result<Timestamp, Rejection> {
    // A commit without its number is open, too. It gets none while another test has written in a transaction
    // that began earlier on the same server.
    test.numbered();
    let origin = Origin::system("test");
    test.ledger
        .drop_event(event.no, Span::default(), origin)
        .await
}

async fn call_off(test: &TestLedger, event: &Event) {
    let cancel = Command::CancelEvent {
        event: event.no,
        reason: soldonce_core::Text::parse("ill").unwrap(),
    };
    test.ask(cancel).await.unwrap();
}

/// It ends no hold, so that no transition tells of it: its refunds have their days from then on.
pub(super) async fn an_event_that_was_sold_is_kept_from_the_day_it_is_called_off(test: TestLedger) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let booking = test.confirm(&hold).await.unwrap();
    test.advance_ms(2 * DROP_AFTER_MS_MIN);
    call_off(&test, &event).await;
    let at = test.ledger.now().plus(Span::from_ms(DROP_AFTER_MS_MIN));
    let kept = drop_event(&test, &event).await.unwrap_err();
    assert_eq!(kept, Rejection::EventNotOver(Some(at)));
    let found = test.ledger.booking(booking.id).await.unwrap();
    assert_eq!(found, Some(booking));
}

/// An event that was called off nine days ago, and the booking of it whose money the seller still has.
async fn called_off_and_paid(test: &TestLedger) -> (Arc<Event>, Booking) {
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let booking = booked(test.ask(test.checkout_command(&hold)).await).unwrap();
    let begun = Some(Effect::Authorise(booking.id));
    let paid = test.report(booking.id, PaymentState::Captured, begun).await;
    booked(test.ask(paid).await).unwrap();
    call_off(test, &event).await;
    test.advance_ms(9 * DAY_MS);
    let in_use = drop_event(test, &event).await.unwrap_err();
    assert_eq!(in_use, Rejection::EventInUse);
    (event, booking)
}

/// The clock has ended its hold, and no sweep has stored that.
pub(super) async fn an_event_is_kept_while_the_end_of_a_hold_is_not_stored(test: TestLedger) {
    let event = test.event().await;
    test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let begins = EventChange {
        starts_at: Some(test.ledger.now()),
        ..EventChange::default()
    };
    let update = Command::UpdateEvent {
        event: event.no,
        change: Box::new(begins),
    };
    test.ask(update).await.unwrap();
    test.advance_ms(9 * DAY_MS);
    let in_use = drop_event(&test, &event).await.unwrap_err();
    assert_eq!(in_use, Rejection::EventInUse);
    test.ask(Command::Sweep { limit: 9 }).await.unwrap();
    test.advance_ms(9 * DAY_MS);
    drop_event(&test, &event).await.unwrap();
}

/// Its bookings say whose the money is.
pub(super) async fn an_event_called_off_is_kept_while_its_buyers_have_paid(test: TestLedger) {
    let (event, booking) = called_off_and_paid(&test).await;
    let returned = test.report(booking.id, PaymentState::Refunded, None).await;
    booked(test.ask(returned).await).unwrap();
    test.advance_ms(9 * DAY_MS);
    drop_event(&test, &event).await.unwrap();
}

/// The provider has the money as captured for good, and the booking keeps its seat.
pub(super) async fn an_event_called_off_is_dropped_when_its_refunds_were_settled_elsewhere(
    test: TestLedger,
) {
    let (event, booking) = called_off_and_paid(&test).await;
    let (id, amount) = (booking.id, booking.total());
    let ordered = Command::Refund {
        booking: id,
        amount,
    };
    let settled = Command::SettleRefund {
        booking: id,
        amount,
    };
    let refund = Effect::Refund {
        booking: id,
        amount,
        total: amount,
    };
    let done = test.report(id, PaymentState::Captured, Some(refund)).await;
    for command in [ordered, settled, done] {
        booked(test.ask(command).await).unwrap();
    }
    test.advance_ms(9 * DAY_MS);
    drop_event(&test, &event).await.unwrap();
}

/// Deletes everything; in how many steps.
async fn clear(test: &TestLedger) -> usize {
    let mut steps = 0;
    while test.ledger.clear_dropped().await.unwrap() {
        steps += 1;
    }
    steps
}

fn sound(test: &TestLedger) {
    if let Some((_, options)) = &test.postgres {
        verified(options);
    }
    if let Some(folder) = &test.folder {
        let report = verify(folder.path(), &mut |_| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.findings);
    }
}

/// Rows of everything that an event has, all tables together.
fn rows_left(test: &TestLedger, tables: &[&str]) -> String {
    let counts = tables
        .iter()
        .map(|table| format!("(SELECT count(*) FROM {table})"));
    let sql = format!("SELECT {}", counts.collect::<Vec<_>>().join(" + "));
    if let Some((_, options)) = &test.postgres {
        return soldonce_testkit::postgres::query(&options.url, &sql).unwrap();
    }
    let folder = test.folder.as_ref().unwrap();
    let file = rusqlite::Connection::open(folder.path().join("ledger.sqlite")).unwrap();
    let count: i64 = file.query_row(&sql, [], |row| row.get(0)).unwrap();
    count.to_string()
}

const TABLES: [&str; 5] = ["units", "holds", "bookings", "lines", "audit"];

pub(super) async fn an_event_that_is_over_is_dropped_for_good(mut test: TestLedger) {
    let (event, booking, hold) = busy(&test).await;
    let kept = test.other_event().await;
    let own = test.hold(&kept, "ann", &["A-1"]).await.unwrap();
    let own = test.confirm(&own).await.unwrap();
    let not_over = drop_event(&test, &event).await.unwrap_err();
    let starts = event.starts_at.unwrap();
    let at = starts.plus(Span::from_ms(DROP_AFTER_MS_MIN));
    assert_eq!(not_over, Rejection::EventNotOver(Some(at)));
    call_off(&test, &event).await;
    let at = test.ledger.now().plus(Span::from_ms(DROP_AFTER_MS_MIN));
    let still = drop_event(&test, &event).await.unwrap_err();
    assert_eq!(still, Rejection::EventNotOver(Some(at)));
    test.advance_ms(DROP_AFTER_MS_MIN);
    let in_use = drop_event(&test, &event).await.unwrap_err();
    assert_eq!(in_use, Rejection::EventInUse, "payments are not given up");
    loop {
        let open = test.ledger.take_effects(Span::from_ms(1), 9);
        let Some(next) = open.await.unwrap().pop() else {
            break;
        };
        let (id, done) = (next.effect.booking(), Some(next.effect));
        let voided = test.report(id, PaymentState::Voided, done).await;
        booked(test.ask(voided).await).unwrap();
        test.advance_ms(2);
    }
    test.advance_ms(9 * DAY_MS);
    let dropped = drop_event(&test, &event).await;
    assert_eq!(dropped, Ok(test.ledger.now()));

    for _ in ["rows are left", "all are deleted"] {
        assert_eq!(
            drop_event(&test, &event).await,
            Err(Rejection::EventDropped)
        );
        assert_eq!(test.ledger.hold(hold.id).await.unwrap(), None);
        assert_eq!(test.ledger.booking(booking.id).await.unwrap(), None);
        let of_ann = test.ledger.bookings_of(holder("ann"), (None, 9));
        assert_eq!(of_ann.await.unwrap().len(), 1, "the one of the other event");
        let release = Command::Release { on: on(&hold) };
        assert_eq!(held(test.ask(release).await), Err(Rejection::HoldNotFound));
        let again = test.hold(&event, "bob", &["B-2"]).await;
        assert_eq!(again, Err(Rejection::EventDropped));
        let new = Command::CreateEvent(Box::new(new_event("hamlet-1", HALL, |_| {})));
        assert_eq!(test.ask(new).await.unwrap_err(), Rejection::EventDropped);
        sound(&test);
        test.restart().await;
        sound(&test);
        clear(&test).await;
    }
    let found = test.ledger.booking(own.id).await.unwrap();
    assert_eq!(found, Some(own));
    let sold = test.hold(&kept, "bob", &["A-2"]).await.unwrap();
    test.confirm(&sold).await.unwrap();
    test.restart().await;
    sound(&test);
}

/// A process dies after the mark, and after each step of the deletion.
pub(super) async fn a_cut_deletion_goes_on_to_its_end(mut test: TestLedger) {
    let rows = r#"{"format":"grid","rows":20,"seats_per_row":60,"category":"Standard"}"#;
    let event = test
        .event_on(rows, |policy| {
            policy.units_per_hold_max = 60;
            policy.units_per_holder_max = 60;
        })
        .await;
    for row in 'A'..='T' {
        let seats: Vec<String> = (1..=60).map(|n| format!("{row}-{n}")).collect();
        let seats: Vec<&str> = seats.iter().map(String::as_str).collect();
        let hold = test
            .hold(&event, &format!("buyer-{row}"), &seats)
            .await
            .unwrap();
        if row < 'N' {
            let name = row.to_string().as_bytes()[0];
            let confirm = test.confirm_command(&hold);
            booked(test.ask_as(confirm, key(name, 1)).await).unwrap();
        }
    }
    call_off(&test, &event).await;
    test.advance_ms(9 * DAY_MS);
    drop_event(&test, &event).await.unwrap();
    let mut steps = 0;
    test.crash().await;
    while test.ledger.clear_dropped().await.unwrap() {
        steps += 1;
        sound(&test);
        test.crash().await;
    }
    assert_eq!(rows_left(&test, &TABLES), "0");
    assert!(steps > 3, "{steps} steps");
    let kept = test.other_event().await;
    test.hold(&kept, "ann", &["A-1"]).await.unwrap();
    sound(&test);
}
