//! A payment follows the reports of its provider, in every order.

use soldonce_core::{
    Amount, Authority, BookingId, BookingState, Command, Currency, Effect, HoldState, Intent,
    LatePayment, LineChoice, Payment, PaymentReport, PaymentState, Policy, PolicyChange, Rejection,
    StateKind,
};

use crate::world::{World, booked, policy, rows_and_floor, text};

/// A world with a payment of one seat, and its booking.
fn paying() -> (World, BookingId) {
    let mut world = World::new(rows_and_floor(&[6], 0), policy());
    let hold = world.hold("ann", "A-1");
    let booking = booked(&world.checkout(hold).unwrap()).id;
    (world, booking)
}

/// Reports all of the money taken, and how many times of it were sent back and came back again.
fn report(world: &mut World, id: BookingId, state: PaymentState, (refunded, bounced): (i64, i64)) {
    let booking = world.inventory.booking(id).unwrap();
    let amount = booking.payment.as_ref().unwrap().amount;
    let times = |times: i64| Amount::from_minor(amount.minor() * times);
    let whole = PaymentReport::whole(booking, Currency::parse("EUR").unwrap(), state);
    let report = PaymentReport {
        captured: amount,
        refunded: times(refunded),
        bounced: times(bounced),
        ..whole
    };
    world.apply(Command::Payment(Box::new(report))).unwrap();
}

fn payment(world: &World, id: BookingId) -> &Payment {
    world
        .inventory
        .booking(id)
        .unwrap()
        .payment
        .as_ref()
        .unwrap()
}

#[test]
fn a_refund_that_came_back_counts_in_any_order_of_reports() {
    use PaymentState::{Captured, Refunded};
    let reports = [
        (Captured, (0, 0)),
        (Refunded, (1, 0)),
        (Captured, (1, 1)),
        (Refunded, (2, 1)),
    ];
    for order in [[0, 1, 2, 3], [0, 2, 1, 3], [2, 0, 3, 1], [3, 2, 1, 0]] {
        let (mut world, id) = paying();
        for (state, back) in order.map(|at| reports[at]) {
            report(&mut world, id, state, back);
        }
        let payment = payment(&world, id);
        assert_eq!(payment.state, Refunded, "{order:?}");
        assert_eq!(payment.given_back(), payment.amount, "{order:?}");
    }
}

/// The first report that comes may tell of all that ever happened.
#[test]
fn a_booking_follows_a_report_that_skips_what_came_back() {
    let (mut world, id) = paying();
    report(&mut world, id, PaymentState::Captured, (1, 1));
    let state = |world: &World, id| world.inventory.booking(id).unwrap().state;
    assert_eq!(state(&world, id), BookingState::Confirmed);

    let (mut world, id) = paying();
    let hold = world.inventory.booking(id).unwrap().hold.unwrap();
    world.wait(20 * 60_000);
    world.sweep();
    assert_eq!(
        world.inventory.hold(hold).unwrap().state,
        HoldState::Expired
    );
    world.hold("bob", "A-1");
    report(&mut world, id, PaymentState::Captured, (0, 0));
    assert_eq!(state(&world, id), BookingState::NeedsRefund);
    report(&mut world, id, PaymentState::Refunded, (2, 1));
    assert_eq!(state(&world, id), BookingState::Refunded);
}

#[test]
fn nothing_else_moves_a_payment_back() {
    let (mut world, id) = paying();
    report(&mut world, id, PaymentState::Refunded, (1, 0));
    for state in PaymentState::ALL {
        report(&mut world, id, state, (0, 0));
        assert_eq!(
            payment(&world, id).state,
            PaymentState::Refunded,
            "{state:?}"
        );
    }
    report(&mut world, id, PaymentState::Captured, (1, 1));
    assert_eq!(payment(&world, id).state, PaymentState::Captured);
    assert_eq!(payment(&world, id).given_back(), Amount::ZERO);
}

/// Staff may send money back at the provider itself; what is asked for here comes on top of it.
#[test]
fn a_refund_made_at_the_provider_stands_for_none_made_here() {
    let (mut world, id) = paying();
    let (amount, left) = (payment(&world, id).amount.minor(), 300);
    report(&mut world, id, PaymentState::Captured, (0, 0));
    let refunded = Amount::from_minor(amount - left);
    let booking = world.inventory.booking(id).unwrap();
    let state = PaymentState::PartlyRefunded;
    let report = PaymentReport {
        captured: Amount::from_minor(amount),
        refunded,
        ..PaymentReport::whole(booking, Currency::parse("EUR").unwrap(), state)
    };
    world.apply(Command::Payment(Box::new(report))).unwrap();
    let refund = |minor| Command::Refund {
        booking: id,
        amount: Amount::from_minor(minor),
    };
    assert_eq!(
        world.apply(refund(left + 1)).unwrap_err().code(),
        "invalid_request"
    );
    let effect = |amount, total| Effect::Refund {
        booking: id,
        amount: Amount::from_minor(amount),
        total: Amount::from_minor(total),
    };
    let ordered = world.apply(refund(100)).unwrap();
    assert_eq!(ordered.effects, [effect(100, amount - left + 100)]);
    let (by, lines) = (Authority::Staff, LineChoice::All);
    let booking = id;
    let cancelled = world.apply(Command::Cancel { booking, by, lines }).unwrap();
    assert_eq!(cancelled.effects, [effect(left - 100, amount)]);
}

/// A report that settles a step and tells nothing else still changes the booking: a server whose copy of it is
/// old must not settle the same step that was asked for again meanwhile.
#[test]
fn what_settles_a_step_writes_the_booking() {
    let (mut world, id) = paying();
    report(&mut world, id, PaymentState::Captured, (0, 0));
    let booking = world.inventory.booking(id).unwrap();
    let currency = Currency::parse("EUR").unwrap();
    let known = PaymentReport::whole(booking, currency, PaymentState::Captured);
    let again = world.apply(Command::Payment(Box::new(known.clone())));
    assert!(!again.unwrap().has_effect());
    let step = Effect::Capture(id);
    let settles = PaymentReport {
        settles: Some(step),
        ..known
    };
    let settled = world.apply(Command::Payment(Box::new(settles))).unwrap();
    assert_eq!(settled.done_effects, [step]);
    assert_eq!(settled.bookings, [id]);
}

fn intent(provider: &str, id: &str) -> Intent {
    let (provider, id, client_secret) = (text(provider), text(id), text("secret"));
    Intent {
        provider,
        id,
        client_secret,
    }
}

fn report_of(world: &World, id: BookingId, state: PaymentState) -> PaymentReport {
    let booking = world.inventory.booking(id).unwrap();
    PaymentReport::whole(booking, Currency::parse("EUR").unwrap(), state)
}

#[test]
fn a_report_is_about_the_payment_that_it_names() {
    let (mut world, id) = paying();
    let made = PaymentReport {
        intent: Some(intent("stripe", "pi_1")),
        settles: Some(Effect::Authorise(id)),
        ..report_of(&world, id, PaymentState::Created)
    };
    let applied = world.apply(Command::Payment(Box::new(made))).unwrap();
    assert_eq!(applied.done_effects, [Effect::Authorise(id)]);
    assert_eq!(payment(&world, id).intent, Some(intent("stripe", "pi_1")));
    let right = report_of(&world, id, PaymentState::Captured);
    for wrong in [
        PaymentReport {
            amount: Amount::from_minor(right.amount.minor() + 1),
            ..right.clone()
        },
        PaymentReport {
            currency: Currency::parse("USD").unwrap(),
            ..right.clone()
        },
        PaymentReport {
            intent: Some(intent("stripe", "pi_2")),
            ..right.clone()
        },
        PaymentReport {
            intent: Some(intent("other", "pi_1")),
            ..right.clone()
        },
    ] {
        let refused = world.apply(Command::Payment(Box::new(wrong)));
        assert_eq!(refused.unwrap_err(), Rejection::PaymentMismatch(id));
    }
    let same = PaymentReport {
        intent: Some(intent("stripe", "pi_1")),
        ..right.clone()
    };
    world.apply(Command::Payment(Box::new(same))).unwrap();
    // One that names no intent, too. The name stays.
    world.apply(Command::Payment(Box::new(right))).unwrap();
    assert_eq!(payment(&world, id).intent, Some(intent("stripe", "pi_1")));
    assert_eq!(payment(&world, id).paid(), payment(&world, id).amount);
}

/// A notice named the intent of a call without an answer, and only then the next try was refused.
#[test]
fn a_payment_whose_intent_is_known_does_not_fail_when_no_other_can_be_made() {
    let (mut world, id) = paying();
    let named = PaymentReport {
        intent: Some(intent("stripe", "pi_1")),
        ..report_of(&world, id, PaymentState::Created)
    };
    world.apply(Command::Payment(Box::new(named))).unwrap();
    let step = Effect::Authorise(id);
    let refused = PaymentReport {
        settles: Some(step),
        ..report_of(&world, id, PaymentState::Failed)
    };
    let applied = world.apply(Command::Payment(Box::new(refused))).unwrap();
    assert_eq!(applied.done_effects, [step]);
    assert_eq!(payment(&world, id).state, PaymentState::Created);
    let booking = world.inventory.booking(id).unwrap();
    assert_eq!(booking.state, BookingState::PendingPayment);
    world.pay(id, PaymentState::Authorised).unwrap();
    let booking = world.inventory.booking(id).unwrap();
    assert_eq!(booking.state, BookingState::Confirmed);
}

/// The answer that made the intent was lost, and what was asked after it refused.
#[test]
fn an_intent_that_is_named_after_its_payment_failed_is_cancelled_once() {
    let (mut world, id) = paying();
    world.pay(id, PaymentState::Failed).unwrap();
    let named = PaymentReport {
        intent: Some(intent("stripe", "pi_1")),
        ..report_of(&world, id, PaymentState::Created)
    };
    let named = Command::Payment(Box::new(named));
    let applied = world.apply(named.clone()).unwrap();
    assert_eq!(applied.effects, [Effect::CancelIntent(id)]);
    assert_eq!(payment(&world, id).intent, Some(intent("stripe", "pi_1")));
    assert!(!world.apply(named).unwrap().has_effect());
    // The step before it found no intent, and says so after this one is known.
    let step = Effect::CancelIntent(id);
    let nothing_given_up = PaymentReport {
        settles: Some(step),
        ..report_of(&world, id, PaymentState::Failed)
    };
    let given_up = PaymentReport {
        intent: Some(intent("stripe", "pi_1")),
        ..nothing_given_up.clone()
    };
    for (report, done) in [(nothing_given_up, 0), (given_up, 1)] {
        let applied = world.apply(Command::Payment(Box::new(report))).unwrap();
        assert_eq!(applied.done_effects.len(), done);
    }
}

#[test]
fn an_effect_is_done_once_the_money_went_back() {
    use PaymentState::{Captured, PartlyRefunded};
    let (mut world, id) = paying();
    report(&mut world, id, Captured, (0, 0));
    let all = payment(&world, id).amount;
    let half = Amount::from_minor(all.minor() / 2);
    let refund = |amount| Command::Refund {
        booking: id,
        amount,
    };
    let more = Amount::from_minor(all.minor() + 1);
    assert!(matches!(
        world.apply(refund(more)),
        Err(Rejection::Invalid(_))
    ));
    assert!(matches!(
        world.apply(refund(Amount::ZERO)),
        Err(Rejection::Invalid(_))
    ));
    let asked = world.apply(refund(half)).unwrap().effects;
    let [effect @ Effect::Refund { total, .. }] = asked[..] else {
        panic!("{asked:?}");
    };
    assert_eq!(total, half);
    // A report that says it is done, of a time when nothing had gone back yet, settles nothing.
    let early = PaymentReport {
        settles: Some(effect),
        ..report_of(&world, id, Captured)
    };
    let applied = world.apply(Command::Payment(Box::new(early))).unwrap();
    assert!(applied.done_effects.is_empty(), "{applied:?}");
    let whole = report_of(&world, id, PartlyRefunded);
    assert_eq!(whole.refunded, half);
    let done = PaymentReport {
        settles: Some(effect),
        ..whole
    };
    let applied = world.apply(Command::Payment(Box::new(done))).unwrap();
    assert_eq!(applied.done_effects, [effect]);
    assert_eq!(payment(&world, id).paid(), all.less(half));
    // The rest may go back, to the last cent.
    world.apply(refund(all.less(half))).unwrap();
    assert!(matches!(
        world.apply(refund(half)),
        Err(Rejection::Invalid(_))
    ));
}

/// The provider refuses for good, as after a lost dispute, and staff send the money another way.
#[test]
fn what_staff_settled_elsewhere_is_not_owed_any_more() {
    let (mut world, booking) = paying();
    report(&mut world, booking, PaymentState::Captured, (0, 0));
    let half = Amount::from_minor(payment(&world, booking).amount.minor() / 2);
    let settle = |world: &mut World, amount| {
        let settled = world.apply(Command::SettleRefund { booking, amount });
        settled.map_err(|rejection| rejection.code())
    };
    let refund = Command::Refund {
        booking,
        amount: half,
    };
    let nothing_ordered = settle(&mut world, half);
    assert_eq!(nothing_ordered.unwrap_err(), "invalid_request");
    let ordered = world.apply(refund.clone()).unwrap().effects;
    let not_all = Amount::from_minor(half.minor() - 1);
    assert_eq!(settle(&mut world, not_all).unwrap_err(), "invalid_request");
    settle(&mut world, half).unwrap();
    assert_eq!(settle(&mut world, half).unwrap_err(), "invalid_request");
    let known = payment(&world, booking);
    assert_eq!((known.paid(), known.left()), (half, half));
    // The step is over though nothing went back, and what is ordered later goes by the provider.
    let done = PaymentReport {
        settles: ordered.first().copied(),
        ..report_of(&world, booking, PaymentState::Captured)
    };
    let applied = world.apply(Command::Payment(Box::new(done))).unwrap();
    assert_eq!(applied.done_effects, ordered);
    let later = Effect::Refund {
        booking,
        amount: half,
        total: payment(&world, booking).amount,
    };
    assert_eq!(world.apply(refund).unwrap().effects, [later]);
}

#[test]
fn money_that_never_came_is_neither_refunded_nor_settled_elsewhere() {
    for state in [
        PaymentState::Created,
        PaymentState::Failed,
        PaymentState::Voided,
    ] {
        let (mut world, booking) = paying();
        world.pay(booking, state).unwrap();
        let amount = payment(&world, booking).amount;
        for command in [
            Command::Refund { booking, amount },
            Command::SettleRefund { booking, amount },
        ] {
            let refused = world.apply(command).unwrap_err();
            assert_eq!(refused, Rejection::BookingNotConfirmed, "{state:?}");
        }
    }
}

#[test]
fn late_money_that_staff_settled_elsewhere_is_refunded() {
    let (mut world, booking) = paying();
    world.wait(20 * 60_000);
    world.sweep();
    world.hold("bob", "A-1");
    report(&mut world, booking, PaymentState::Captured, (0, 0));
    let state = |world: &World| world.inventory.booking(booking).unwrap().state;
    assert_eq!(state(&world), BookingState::NeedsRefund);
    let amount = payment(&world, booking).amount;
    let settle = Command::SettleRefund { booking, amount };
    world.apply(settle).unwrap();
    assert_eq!(state(&world), BookingState::Refunded);
}

/// Staff had taken a part of late money in the provider's dashboard.
#[test]
fn what_staff_settle_elsewhere_is_no_more_than_was_taken() {
    let (mut world, booking) = paying();
    world.wait(20 * 60_000);
    world.sweep();
    world.hold("bob", "A-1");
    let amount = payment(&world, booking).amount;
    let taken = Amount::from_minor(amount.minor() / 2);
    let told = PaymentReport {
        captured: taken,
        ..report_of(&world, booking, PaymentState::Captured)
    };
    let ordered = world.apply(Command::Payment(Box::new(told.clone())));
    let ordered = ordered.unwrap().effects;
    assert_eq!(payment(&world, booking).owed(), taken);
    let all = Command::SettleRefund { booking, amount };
    let refused = world.apply(all).unwrap_err();
    assert_eq!(refused.code(), "invalid_request");
    let amount = taken;
    world
        .apply(Command::SettleRefund { booking, amount })
        .unwrap();
    assert_eq!(payment(&world, booking).owed(), Amount::ZERO);
    // Nothing of the step is left to the provider.
    let done = PaymentReport {
        settles: ordered.first().copied(),
        ..told
    };
    let applied = world.apply(Command::Payment(Box::new(done))).unwrap();
    assert_eq!(applied.done_effects, ordered);
}

/// Money can only come back where it came: another report of more that came back moves nothing.
#[test]
fn a_payment_that_did_not_come_does_not_come_back() {
    let (mut world, id) = paying();
    report(&mut world, id, PaymentState::Captured, (0, 0));
    let amount = payment(&world, id).amount;
    let strange = PaymentReport {
        refunded: amount,
        bounced: amount,
        ..report_of(&world, id, PaymentState::Processing)
    };
    world.apply(Command::Payment(Box::new(strange))).unwrap();
    assert_eq!(payment(&world, id).state, PaymentState::Captured);
}

/// A refund that was made at the provider and came back is not ours to send again.
#[test]
fn what_was_not_sent_from_here_is_not_sent_again() {
    use PaymentState::Captured;
    let (mut world, id) = paying();
    report(&mut world, id, Captured, (0, 0));
    let amount = payment(&world, id).amount;
    let bounced = PaymentReport {
        refunded: amount,
        bounced: amount,
        ..report_of(&world, id, Captured)
    };
    let applied = world.apply(Command::Payment(Box::new(bounced))).unwrap();
    assert!(applied.effects.is_empty(), "{:?}", applied.effects);
}

fn set_late_payment(world: &mut World, late_payment: LatePayment) {
    let terms = Policy {
        late_payment,
        ..policy()
    };
    let change = Box::new(PolicyChange::from(&terms).into());
    let event = world.event;
    world.apply(Command::UpdateEvent { event, change }).unwrap();
}

/// Late money was refused, and staff sent it another way. Then the policy was changed, and a part went back at the
/// provider all the same.
#[test]
fn money_that_was_settled_elsewhere_needs_no_refund() {
    let (mut world, booking) = paying();
    world.wait(60_000);
    world.sweep();
    set_late_payment(&mut world, LatePayment::Refuse);
    world.pay(booking, PaymentState::Captured).unwrap();
    let amount = payment(&world, booking).owed();
    world
        .apply(Command::SettleRefund { booking, amount })
        .unwrap();
    set_late_payment(&mut world, LatePayment::Refund);
    let told = world.pay(booking, PaymentState::PartlyRefunded).unwrap();
    assert_eq!(told.effects, []);
    let state = world.inventory.booking(booking).unwrap().state;
    assert_eq!(state, BookingState::Expired);
}

/// Late money was refused and ordered back under the policy of then; that of now sells nothing for it.
#[test]
fn money_that_is_ordered_back_buys_nothing() {
    let (mut world, id) = paying();
    world.wait(60_000);
    world.sweep();
    for (late_payment, told, expected) in [
        (
            LatePayment::Refuse,
            PaymentState::Captured,
            BookingState::Expired,
        ),
        (
            LatePayment::IfStillFree,
            PaymentState::PartlyRefunded,
            BookingState::NeedsRefund,
        ),
        (
            LatePayment::IfStillFree,
            PaymentState::Refunded,
            BookingState::Refunded,
        ),
    ] {
        set_late_payment(&mut world, late_payment);
        world.pay(id, told).unwrap();
        let booking = world.inventory.booking(id).unwrap();
        assert_eq!(booking.state, expected, "{told:?}");
        assert_eq!(world.state("A-1"), StateKind::Free, "{told:?}");
    }
}

#[test]
fn a_hold_that_costs_something_is_not_confirmed_unpaid() {
    let (mut world, _) = paying();
    let hold = world.hold("bob", "A-2");
    let booking = world.mint_booking();
    let command = Command::ConfirmFree {
        on: crate::world::on(hold),
        booking,
        reference: None,
    };
    assert_eq!(
        world.apply(command).unwrap_err(),
        Rejection::PaymentRequired
    );
}

/// After an exchange a booking may have an old line of a unit and the sold one.
#[test]
fn the_sold_line_of_a_unit_comes_before_older_ones() {
    use soldonce_core::LineState;
    let (mut world, _) = paying();
    let hold = world.hold("bob", "A-2");
    let mut booking = booked(&world.confirm(hold).unwrap()).clone();
    let unit = world.unit("A-2");
    let sold = booking.lines[0];
    let mut old = sold;
    old.state = LineState::Cancelled;
    for lines in [vec![old, sold], vec![sold, old]] {
        booking.lines = lines;
        assert_eq!(booking.line(unit), Some(&sold));
    }
    booking.lines = vec![old];
    assert_eq!(booking.line(unit), Some(&old));
    assert_eq!(booking.line(world.unit("A-3")), None);
}
