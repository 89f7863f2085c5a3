//! Every field of a policy is found by its name, takes its values and no others, and agrees with its neighbours.

use soldonce_core::{
    Adjacency, Deadline, Event, EventChange, LatePayment, OnPaymentFailure, POLICY_FIELDS, Policy,
    PolicyChange, PolicyField, PolicyKind, PolicyValue, Span, Timestamp,
};

use crate::world::{World, policy, rows_and_floor, text};

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms)
}

/// A policy of which no field is as by default.
fn other() -> Policy {
    Policy {
        hold_ttl: Span::from_ms(7_000),
        hold_max: Span::from_ms(8_000),
        units_per_hold_max: 3,
        units_per_holder_max: 4,
        units_bought_per_holder_max: Some(5),
        payment_window: Span::from_ms(9_000),
        retry_window: Span::from_ms(10_000),
        late_payment: LatePayment::Refund,
        on_payment_failure: OnPaymentFailure::Release,
        adjacency: Adjacency::NoOrphan,
        sale_opens_at: Some(at(1)),
        sale_closes_at: Deadline::At(at(2)),
        cancel_until: Deadline::Never,
        listed: false,
    }
}

fn values(field: &PolicyField) -> [PolicyValue; 2] {
    [&other(), &Policy::default()].map(|policy| field.get(policy))
}

#[test]
fn each_field_is_set_by_its_name_and_read_back() {
    let mut policy = Policy::default();
    for field in POLICY_FIELDS {
        let named = PolicyField::named(field.name).unwrap();
        assert_eq!(named.name, field.name);
        let [value, before] = values(field);
        assert_ne!(value, before, "{}", field.name);
        let mut change = PolicyChange::default();
        change.set(named, value).unwrap();
        policy = policy.merged(&change);
        assert_eq!(field.get(&policy), value, "{}", field.name);
    }
    assert_eq!(policy, other());
    assert!(PolicyField::named("hold_ttl").is_none());
    // And back, null among the values.
    let back = Policy::default().merged(&PolicyChange::from(&other()));
    assert_eq!(back, other());
    let defaults = other().merged(&PolicyChange::from(&Policy::default()));
    assert_eq!(defaults, Policy::default());
}

#[test]
fn a_field_takes_the_values_of_its_kind_and_says_which() {
    let every = [
        PolicyValue::Null,
        PolicyValue::Number(1_000),
        PolicyValue::Time(at(3)),
        PolicyValue::Flag(true),
        PolicyValue::Word("never"),
        PolicyValue::Word("refund"),
        PolicyValue::Word("another"),
    ];
    for field in POLICY_FIELDS {
        for value in every {
            let mut change = PolicyChange::default();
            let set = change.set(field, value);
            let takes = match (field.kind, value) {
                (PolicyKind::Millis | PolicyKind::Count, PolicyValue::Number(_))
                | (PolicyKind::CountOrNull, PolicyValue::Number(_) | PolicyValue::Null)
                | (
                    PolicyKind::TimeOrNull | PolicyKind::Deadline,
                    PolicyValue::Time(_) | PolicyValue::Null,
                )
                | (PolicyKind::Deadline, PolicyValue::Word("never"))
                | (PolicyKind::Flag, PolicyValue::Flag(_)) => true,
                (PolicyKind::Word(words), PolicyValue::Word(word)) => words.contains(&word),
                _ => false,
            };
            assert_eq!(set.is_ok(), takes, "{}: {value:?}", field.name);
            if let Err(refused) = set {
                assert_eq!(refused.field, field.name);
                assert!(refused.reason.len() > "it takes ".len(), "{refused:?}");
            }
        }
    }
    let words = |name| PolicyField::named(name).unwrap().kind.in_words();
    assert_eq!(words("hold_ttl_ms"), "milliseconds");
    assert_eq!(words("sale_opens_at"), "a time, or null");
    assert_eq!(
        words("late_payment"),
        "one of `refuse`, `if_still_free`, `refund`"
    );
    assert_eq!(words("units_per_hold_max"), "a number up to 4294967295");
}

#[test]
fn a_field_knows_its_words() {
    let word = |name, given| PolicyField::named(name).unwrap().word(given);
    let known = |given| Some(PolicyValue::Word(given));
    assert_eq!(word("late_payment", "refund"), known("refund"));
    assert_eq!(word("late_payment", "never"), None);
    assert_eq!(word("cancel_until", "never"), known("never"));
    assert_eq!(word("cancel_until", "refund"), None);
    assert_eq!(word("listed", "never"), None);
}

#[test]
fn a_sale_closes_after_it_opens() {
    let sale = |opens: Option<i64>, closes| Policy {
        sale_opens_at: opens.map(at),
        sale_closes_at: closes,
        ..Policy::default()
    };
    let closes = |ms| Deadline::At(at(ms));
    for (policy, is_right) in [
        (sale(Some(5), closes(6)), true),
        (sale(Some(5), closes(5)), false),
        (sale(Some(5), closes(4)), false),
        (sale(None, closes(4)), true),
        (sale(Some(5), Deadline::Never), true),
    ] {
        let refused = policy.validate().err().map(|wrong| wrong.field);
        let expected = (!is_right).then_some("policy.sale_closes_at");
        assert_eq!(refused, expected, "{policy:?}");
    }
    for (policy, starts, is_right) in [
        (sale(Some(5), Deadline::AtStart), Some(6), true),
        (sale(Some(5), Deadline::AtStart), Some(5), false),
        (sale(Some(5), Deadline::AtStart), Some(4), false),
        (sale(Some(5), Deadline::AtStart), None, true),
        (sale(Some(5), Deadline::Never), Some(4), true),
        (sale(None, Deadline::AtStart), Some(4), true),
    ] {
        let refused = policy.require_sale(starts.map(at));
        let refused = refused.err().map(|wrong| wrong.field);
        let expected = (!is_right).then_some("policy.sale_opens_at");
        assert_eq!(refused, expected, "{policy:?} {starts:?}");
    }
}

/// Another build had other bounds.
#[test]
fn what_was_wrong_before_a_change_is_not_refused_with_it() {
    let world = World::new(rows_and_floor(&[6], 0), policy());
    let mut event = Event::clone(world.inventory.event(world.event).unwrap());
    event.starts_at = Some(at(4));
    event.policy = Policy {
        hold_ttl: Span::from_ms(1),
        sale_opens_at: Some(at(5)),
        ..policy()
    };
    let set = |name, number| {
        let mut change = PolicyChange::default();
        let field = PolicyField::named(name).unwrap();
        change.set(field, PolicyValue::Number(number)).unwrap();
        let refused = event.changed(&change.into()).err();
        refused.map(|wrong| wrong.field)
    };
    assert_eq!(set("units_per_hold_max", 3), None);
    assert_eq!(
        set("units_per_hold_max", 0),
        Some("policy.units_per_hold_max")
    );
    assert_eq!(set("hold_ttl_ms", 1), None);
    assert_eq!(set("hold_ttl_ms", 2), Some("policy.hold_ttl_ms"));
    let renamed = EventChange {
        name: Some(text("Hamlet")),
        ..EventChange::default()
    };
    assert_eq!(event.changed(&renamed).unwrap().name, text("Hamlet"));
}
