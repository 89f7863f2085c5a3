//! What a random run may do. Numbers pick from what is there, so that every run means something.

use proptest::collection::vec;
use proptest::prelude::*;
use soldonce_core::{PaymentState, Together};

/// Seats by number, and places of the floor.
#[derive(Clone, Debug)]
pub(super) struct Units {
    pub(super) seats: Vec<u8>,
    pub(super) places: u8,
}

/// How a command names a hold.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// Counted from the latest one.
    pub(super) hold: u8,
    pub(super) by: By,
    pub(super) fence: Known,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    Secret,
    Owner,
    Stranger,
    Staff,
}

/// Which fence a caller knows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    None,
    Right,
    Older,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Time {
    Ms(u32),
    /// Just before the next hold ends.
    BeforeEnd,
    /// The millisecond at which it ends.
    AtEnd,
    AfterEnd,
    /// The wall clock jumps back; the ledger's time must not.
    Back(u16),
}

#[derive(Clone, Debug)]
pub(super) enum Op {
    /// On the first event or the other one.
    OnEvent(u8, OnEvent),
    OnHold(Reach, OnHold),
    /// On a booking, counted from the latest one.
    OnBooking(u8, OnBooking),
    Sweep(u8),
    Wait(Time),
    /// The process starts again from what was stored.
    Restart,
}

#[derive(Clone, Debug)]
pub(super) enum OnEvent {
    Hold {
        holder: u8,
        units: Units,
        ttl: Option<u32>,
    },
    Best {
        holder: u8,
        quantity: u8,
        category: u8,
        together: Together,
    },
    Sell {
        holder: u8,
        units: Units,
    },
    Block(Units),
    Unblock(Units),
    /// Other budgets and windows for everybody.
    Rules {
        per_holder: u8,
        window: u32,
    },
    CallOff,
}

#[derive(Clone, Debug)]
pub(super) enum OnHold {
    Change {
        add: Units,
        drop: Vec<u8>,
        drop_places: u8,
    },
    Extend {
        ttl: Option<u32>,
    },
    /// Perhaps in exchange for lines of a booking.
    Checkout(Option<(u8, Vec<u8>)>),
    Abandon,
    Release,
    Revoke,
    Confirm,
}

#[derive(Clone, Debug)]
pub(super) enum OnBooking {
    Pay(PaymentState),
    /// Of half a unit's price each.
    Refund(u8),
    Cancel {
        by: By,
        lines: Option<Vec<u8>>,
    },
    Exchange {
        give: Vec<u8>,
        on: Reach,
    },
}

fn units() -> impl Strategy<Value = Units> {
    (vec(0..10_u8, 0..4), prop_oneof![3 => Just(0), 2 => 0..4_u8])
        .prop_map(|(seats, places)| Units { seats, places })
}

fn reach() -> impl Strategy<Value = Reach> {
    let by = prop_oneof![
        6 => Just(By::Secret),
        3 => Just(By::Owner),
        1 => Just(By::Stranger),
        1 => Just(By::Staff),
    ];
    let fence =
        prop_oneof![4 => Just(Known::None), 4 => Just(Known::Right), 1 => Just(Known::Older)];
    (0..6_u8, by, fence).prop_map(|(hold, by, fence)| Reach { hold, by, fence })
}

fn ttl() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![3 => Just(None), 2 => (1_000..190_000_u32).prop_map(Some), 1 => Just(Some(1_000))]
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        3 => (0..70_000_u32).prop_map(Time::Ms),
        2 => Just(Time::BeforeEnd),
        4 => Just(Time::AtEnd),
        2 => Just(Time::AfterEnd),
        1 => any::<u16>().prop_map(Time::Back),
    ]
}

fn on_hold() -> impl Strategy<Value = Op> {
    let change = (units(), vec(0..4_u8, 0..3), 0..3_u8);
    let what = prop_oneof![
        5 => change.prop_map(|(add, drop, drop_places)| OnHold::Change { add, drop, drop_places }),
        6 => ttl().prop_map(|ttl| OnHold::Extend { ttl }),
        2 => Just(OnHold::Checkout(None)),
        2 => (0..4_u8, vec(0..4_u8, 1..3)).prop_map(|given| OnHold::Checkout(Some(given))),
        1 => Just(OnHold::Abandon),
        3 => Just(OnHold::Release),
        1 => Just(OnHold::Revoke),
        4 => Just(OnHold::Confirm),
    ];
    (reach(), what).prop_map(|(on, what)| Op::OnHold(on, what))
}

fn on_booking() -> impl Strategy<Value = Op> {
    let by = prop_oneof![3 => Just(By::Secret), 1 => Just(By::Stranger), 1 => Just(By::Staff)];
    let lines = prop_oneof![1 => Just(None), 2 => vec(0..4_u8, 1..3).prop_map(Some)];
    let state = prop_oneof![
        3 => Just(PaymentState::Authorised),
        2 => Just(PaymentState::Captured),
        2 => Just(PaymentState::Failed),
        2 => proptest::sample::select(PaymentState::ALL.to_vec()),
    ];
    let what = prop_oneof![
        6 => state.prop_map(OnBooking::Pay),
        1 => (0..4_u8).prop_map(OnBooking::Refund),
        2 => (by, lines).prop_map(|(by, lines)| OnBooking::Cancel { by, lines }),
        4 => (vec(0..4_u8, 0..3), reach()).prop_map(|(give, on)| OnBooking::Exchange { give, on }),
    ];
    (0..4_u8, what).prop_map(|(booking, what)| Op::OnBooking(booking, what))
}

fn on_event() -> impl Strategy<Value = Op> {
    let hold = (0..4_u8, units(), ttl());
    let together = prop_oneof![Just(Together::Preferred), Just(Together::Required)];
    let best = (0..4_u8, 1..4_u8, 0..3_u8, together);
    let what = prop_oneof![
        10 => hold.prop_map(|(holder, units, ttl)| OnEvent::Hold { holder, units, ttl }),
        3 => best.prop_map(|(holder, quantity, category, together)| {
            OnEvent::Best { holder, quantity, category, together }
        }),
        1 => (0..4_u8, units()).prop_map(|(holder, units)| OnEvent::Sell { holder, units }),
        1 => units().prop_map(OnEvent::Block),
        1 => units().prop_map(OnEvent::Unblock),
    ];
    let event = prop_oneof![4 => Just(0_u8), 1 => Just(1)];
    (event, what).prop_map(|(event, what)| Op::OnEvent(event, what))
}

/// What happens once in a long run.
fn rare() -> impl Strategy<Value = Op> {
    let rules = (1..8_u8, 1_000..60_000_u32)
        .prop_map(|(per_holder, window)| Op::OnEvent(0, OnEvent::Rules { per_holder, window }));
    prop_oneof![3 => Just(Op::Restart), 1 => rules, 1 => Just(Op::OnEvent(1, OnEvent::CallOff))]
}

pub(super) fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        100 => on_event(),
        100 => on_hold(),
        50 => on_booking(),
        60 => time().prop_map(Op::Wait),
        10 => (0..3_u8).prop_map(Op::Sweep),
        5 => rare(),
    ];
    vec(op, 1..most)
}
