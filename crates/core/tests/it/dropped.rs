//! When an event may be dropped, and what is left of it.

use soldonce_core::limits::DROP_AFTER_MS_MIN;
use soldonce_core::{
    Command, Deadline, Event, EventState, EventUse, Policy, Rejection, Span, StateKind, Timestamp,
};

use crate::world::{World, policy, rows_and_floor, text};

const LEAST: i64 = DROP_AFTER_MS_MIN.cast_signed();

fn world() -> World {
    World::new(rows_and_floor(&[5, 5], 4), policy())
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms)
}

/// An event that starts then and whose sale closes then.
fn event(starts: Option<i64>, closes: Deadline, state: EventState) -> Event {
    let event = world()
        .inventory
        .events()
        .next()
        .map(|event| Event::clone(event));
    Event {
        starts_at: starts.map(at),
        policy: Policy {
            sale_closes_at: closes,
            ..policy()
        },
        state,
        created_at: at(5),
        ..event.unwrap()
    }
}

/// From when on it may be dropped; the millisecond before is refused with it.
fn droppable_at(event: &Event, last_commit: i64, keep: Span) -> Option<i64> {
    let found = EventUse {
        last_commit: at(last_commit),
        open: 0,
    };
    let said = match event.require_droppable(Timestamp::MIN, found, keep) {
        Err(Rejection::EventNotOver(said)) => said?,
        other => panic!("{other:?}"),
    };
    let before = at(said.ms() - 1);
    let refused = Err(Rejection::EventNotOver(Some(said)));
    assert_eq!(event.require_droppable(before, found, keep), refused);
    assert_eq!(event.require_droppable(said, found, keep), Ok(()));
    let in_use = EventUse { open: 1, ..found };
    let refused = Err(Rejection::EventInUse);
    assert_eq!(event.require_droppable(said, in_use, keep), refused);
    Some(said.ms())
}

#[test]
fn an_event_is_kept_for_eight_days_after_its_end_and_its_last_commit() {
    let none = Span::default();
    let open = |starts, closes| event(starts, closes, EventState::Open);
    let both = open(Some(1_000), Deadline::At(at(2_000)));
    assert_eq!(droppable_at(&both, 0, none), Some(2_000 + LEAST));
    assert_eq!(droppable_at(&both, 3_000, none), Some(3_000 + LEAST));
    let starts_later = open(Some(9_000), Deadline::At(at(2_000)));
    assert_eq!(droppable_at(&starts_later, 0, none), Some(9_000 + LEAST));
    let at_start = open(Some(1_000), Deadline::AtStart);
    assert_eq!(droppable_at(&at_start, 0, none), Some(1_000 + LEAST));
    for endless in [
        open(None, Deadline::AtStart),
        open(Some(1), Deadline::Never),
    ] {
        assert_eq!(droppable_at(&endless, 0, none), None);
    }
    let cancelled = event(None, Deadline::Never, EventState::Cancelled(text("ill")));
    assert_eq!(droppable_at(&cancelled, 0, none), Some(5 + LEAST));
    assert_eq!(droppable_at(&cancelled, 70, none), Some(70 + LEAST));
}

#[test]
fn an_operator_keeps_it_longer_never_shorter() {
    let ended = event(Some(0), Deadline::AtStart, EventState::Open);
    let least = Span::from_ms(DROP_AFTER_MS_MIN);
    for (keep, kept) in [
        (Span::from_ms(1), LEAST),
        (least, LEAST),
        (Span::from_ms(DROP_AFTER_MS_MIN + 1), LEAST + 1),
    ] {
        assert_eq!(droppable_at(&ended, 0, keep), Some(kept));
    }
}

#[test]
fn nothing_is_left_of_a_dropped_event_and_its_id_stays_taken() {
    let mut world = world();
    let hold = world.hold("ann", "A-1");
    world.confirm(hold).unwrap();
    let other = world.add_event("other", rows_and_floor(&[5], 4), policy());
    let event = world.inventory.events().next().unwrap().clone();
    let selection = world.select("A-2");
    world.inventory.drop_event(event.no);
    assert_eq!(world.inventory.hold(hold), None);
    assert_eq!(world.inventory.bookings().count(), 0);
    assert_eq!(world.inventory.events().count(), 1);
    let dropped: Vec<_> = world.inventory.dropped().collect();
    assert_eq!(dropped, [(&event.id, event.no)]);
    let gone = Rejection::EventDropped;
    let block = Command::Block {
        event: event.no,
        selection,
        reason: text("again"),
    };
    assert_eq!(world.apply(block).unwrap_err(), gone);
    let cancel = Command::CancelEvent {
        event: event.no,
        reason: text("again"),
    };
    assert_eq!(world.apply(cancel).unwrap_err(), gone);
    let again = soldonce_core::NewEvent {
        id: event.id.clone(),
        name: event.name.clone(),
        starts_at: None,
        currency: event.currency,
        chart: event.chart.clone(),
        prices: [].into(),
        policy: policy(),
        fingerprint: event.fingerprint,
    };
    let again = world.apply(Command::CreateEvent(Box::new(again)));
    assert_eq!(again.unwrap_err(), gone);
    let next = world.add_event("next", rows_and_floor(&[5], 4), policy());
    assert_eq!(next.0, other.0 + 1, "numbers go on");
    let seating = world.inventory.seating(other).unwrap();
    let free = |unit: &soldonce_core::Unit| unit.state.kind() == StateKind::Free;
    assert!(seating.units().iter().all(free));
    // The history that it would judge is gone.
    world.forgive();
}
