//! The live side under random commands: after each one the snapshot is the ledger's, the feed leads
//! from any older snapshot to it, however its commits are cut into frames, and the shield refuses
//! exactly what the ledger would refuse.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use soldonce_core::{
    Amount, Applied, Authority, BookingId, CallerId, Command, Currency, EventId, EventNo, HoldId,
    Holder, HolderName, Inventory, NewEvent, NewHold, OnHold, Origin, Policy, Rejection, Seq, Span,
    StateKind, Tally, Text, Timestamp, TtlMax, UnitNo, Wish,
};

use super::{Digest, FeedChange, FeedSource, Frame, Live, SeatSnapshot};
use crate::ledger::Observer;
use crate::limits::FEED_COMMITS_MAX;
use crate::metrics::Metrics;

const HALL: &str = r#"{"format":"seats",
  "seats":[{"seat":"A-1","category":"S"},{"seat":"A-2","category":"S"},{"seat":"A-3","category":"S"},
           {"seat":"B-1","category":"S"},{"seat":"B-2","category":"S"},{"seat":"B-3","category":"S"}],
  "areas":[{"area":"floor","capacity":4,"category":"S"}]}"#;
const EVENT: EventNo = EventNo(0);

#[derive(Clone, Debug)]
enum Op {
    Seats { holder: u8, seats: Vec<u8> },
    Floor { holder: u8, quantity: u32 },
    Confirm(usize),
    Release(usize),
    Block(u8),
    Wait(u64),
    Sweep,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..3_u8, prop::collection::vec(0..6_u8, 1..3))
            .prop_map(|(holder, seats)| Op::Seats { holder, seats }),
        2 => (0..3_u8, 1..4_u32).prop_map(|(holder, quantity)| Op::Floor { holder, quantity }),
        2 => (0..8_usize).prop_map(Op::Confirm),
        1 => (0..8_usize).prop_map(Op::Release),
        1 => (0..6_u8).prop_map(Op::Block),
        2 => (1..1_500_u64).prop_map(Op::Wait),
        1 => Just(Op::Sweep),
    ]
}

/// A ledger's writer with nothing durable: decides, then tells the observer.
struct World {
    inventory: Inventory,
    live: Live,
    now: Timestamp,
    holds: Vec<HoldId>,
    minted: u128,
}

impl World {
    fn new() -> Self {
        let live = Live::new(Arc::new(Metrics::default()));
        let inventory = Inventory::new();
        live.opened(&inventory);
        let mut world = Self {
            inventory,
            live,
            now: Timestamp::from_ms(10_000),
            holds: Vec::new(),
            minted: 0,
        };
        world
            .apply(Command::CreateEvent(Box::new(hall())))
            .expect("the hall is legal");
        world
    }

    fn apply(&mut self, command: Command) -> Result<Applied, Rejection> {
        let applied = self
            .inventory
            .apply(self.now, &Origin::system("test"), command)?;
        self.live
            .committed(&self.inventory, std::slice::from_ref(&applied));
        Ok(applied)
    }

    fn mint(&mut self) -> u128 {
        self.minted += 1;
        self.minted
    }

    fn step(&mut self, op: &Op) {
        let command = match op {
            Op::Wait(ms) => {
                self.now = self.now.plus(Span::from_ms(*ms));
                return;
            }
            Op::Sweep => Command::Sweep { limit: 10 },
            Op::Seats { holder, seats } => self.hold(*holder, &named(seats), 0),
            Op::Floor { holder, quantity } => self.hold(*holder, &[], *quantity),
            Op::Block(seat) => {
                let selection = self.select(&named(&[*seat]), 0);
                let reason = Text::parse("test").expect("a legal text");
                Command::Block {
                    event: EVENT,
                    selection,
                    reason,
                }
            }
            Op::Confirm(at) | Op::Release(at) => {
                let Some(hold) = self.holds.get(*at).copied() else {
                    return;
                };
                let on = OnHold {
                    hold,
                    by: Authority::Staff,
                    fence: None,
                };
                if matches!(op, Op::Release(_)) {
                    Command::Release { on }
                } else {
                    let booking = BookingId::from_bits(self.mint());
                    Command::Confirm {
                        on,
                        booking,
                        reference: None,
                    }
                }
            }
        };
        // Refusals are half of the test: they must leave everything as it was.
        if let Ok(applied) = self.apply(command)
            && let soldonce_core::Answer::Held(hold) = applied.answer
        {
            self.holds.insert(0, hold.id);
        }
    }

    fn select(&self, seats: &[String], floor: u32) -> soldonce_core::Selection {
        let chart = &self.inventory.event(EVENT).expect("made first").chart;
        let areas = (floor > 0).then_some(("floor", floor));
        chart
            .select(seats.iter().map(String::as_str), areas)
            .expect("names of the hall")
    }

    fn hold(&mut self, number: u8, seats: &[String], floor: u32) -> Command {
        let wish = Wish::Named(self.select(seats, floor));
        let hold = HoldId::from_bits(self.mint());
        let ttl = Some(Span::from_ms(1_000));
        Command::Hold(NewHold {
            event: EVENT,
            hold,
            holder: holder(number),
            wish,
            ttl,
            ttl_max: TtlMax::HoldMax,
        })
    }

    fn snapshot(&self) -> Arc<SeatSnapshot> {
        self.live.event(EVENT).expect("shown").snapshot()
    }
}

fn named(seats: &[u8]) -> Vec<String> {
    let name = |seat: &u8| format!("{}-{}", if *seat < 3 { "A" } else { "B" }, seat % 3 + 1);
    seats.iter().map(name).collect()
}

fn holder(number: u8) -> Holder {
    let name = HolderName::parse(&format!("h{number}")).expect("a legal id");
    Holder {
        caller: CallerId::from_bits(u128::from(number)),
        name,
    }
}

fn hall() -> NewEvent {
    NewEvent {
        id: EventId::parse("e").expect("a legal id"),
        name: Text::parse("E").expect("a legal text"),
        starts_at: None,
        currency: Currency::parse("EUR").expect("a currency"),
        chart: Arc::new(
            crate::chart::read(HALL.as_bytes())
                .expect("a legal plan")
                .chart,
        ),
        prices: BTreeMap::from([("S".to_owned(), Amount::from_minor(1))]),
        policy: Policy::default(),
        fingerprint: [0; 32],
    }
}

fn assert_snapshot_is_the_ledgers(world: &World) {
    let (snapshot, seating) = (
        world.snapshot(),
        world.inventory.seating(EVENT).expect("made"),
    );
    assert_eq!(snapshot.seq, world.inventory.seq(EVENT));
    assert_eq!(snapshot.total, seating.tally());
    assert_eq!(
        snapshot.areas,
        vec![seating.area_tally(soldonce_core::AreaNo(0))]
    );
    for (unit, kind) in snapshot.seats() {
        assert_eq!(kind, seating.unit(unit).state.kind(), "{unit:?}");
    }
}

fn assert_shield_agrees(world: &World) {
    let live = world.live.event(EVENT).expect("shown");
    let chart = &live.event().chart;
    for unit in (0..chart.seats()).map(UnitNo) {
        for number in 0..4 {
            let refusal = live
                .shield
                .try_seats(chart, &[unit], &holder(number), world.now);
            let open = world
                .inventory
                .seating(EVENT)
                .expect("made")
                .is_available(unit, world.now);
            let owner = world
                .inventory
                .holds()
                .find(|hold| hold.is_live(world.now) && hold.has(unit));
            let own = owner.is_some_and(|hold| hold.holder == holder(number));
            assert_eq!(
                refusal.is_some(),
                !open && !own,
                "{unit:?} for holder {number}: {refusal:?}"
            );
        }
    }
}

/// Applies the feed to an older snapshot, in frames that end at these commits and at the last one,
/// each of which begins so many commits before the end of the one before.
fn replay(old: &SeatSnapshot, world: &World, cuts: &[(u64, u64)]) -> (Seq, Vec<StateKind>, Tally) {
    let live = world.live.event(EVENT).expect("shown");
    let mut kinds: Vec<StateKind> = old.seats().map(|(_, kind)| kind).collect();
    let (mut seq, mut floor) = (old.seq, old.areas[0]);
    for (commits, overlap) in cuts.iter().copied().chain([(u64::MAX, 0)]) {
        let until = Seq(seq.0.saturating_add(commits)).min(live.seq());
        let after = Seq(seq.0.saturating_sub(overlap)).max(old.seq);
        let kept = live.feed.between(after, until).expect("it is kept");
        let Some(frame) = Frame::merge(&kept) else {
            continue;
        };
        assert_eq!((frame.from, frame.seq), (after.next(), until), "a gap");
        seq = frame.seq;
        for change in &frame.changes {
            match change {
                FeedChange::Seat(unit, kind) => kinds[unit.index()] = *kind,
                FeedChange::Area(_, tally) => floor = *tally,
            }
        }
    }
    (seq, kinds, floor)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn snapshot_and_frames_and_shield_are_the_ledgers(
        ops in prop::collection::vec(op(), 1..60),
        cuts in prop::collection::vec((0..9_u64, 0..4_u64), 0..30),
    ) {
        let mut world = World::new();
        let mut snapshots = vec![world.snapshot()];
        for op in &ops {
            world.step(op);
            assert_snapshot_is_the_ledgers(&world);
            assert_shield_agrees(&world);
            snapshots.push(world.snapshot());
        }
        let last = world.snapshot();
        let kinds: Vec<StateKind> = last.seats().map(|(_, kind)| kind).collect();
        for old in &snapshots {
            let replayed = replay(old, &world, &cuts);
            prop_assert_eq!(replayed, (last.seq, kinds.clone(), last.areas[0]));
        }
    }
}

#[test]
fn a_commit_is_known_by_its_digest_as_long_as_it_is_kept() {
    let digest = |seq: u64| Digest::of(&[u8::try_from(seq % 251).expect("it fits"); 32]);
    let feed = FeedSource::starting_after(Seq(7), digest(7));
    assert!(feed.has(Seq(7), digest(7)) && !feed.has(Seq(7), digest(8)));
    let last = 8 + u64::try_from(FEED_COMMITS_MAX).expect("it fits");
    for seq in 8..=last {
        feed.publish(Frame {
            from: Seq(seq),
            seq: Seq(seq),
            digest: digest(seq),
            at: Timestamp::ZERO,
            changes: Vec::new(),
        });
    }
    let kept = [(7, false), (8, true), (9, true), (last, true)];
    for (seq, is_kept) in kept.into_iter().chain([(last + 1, false)]) {
        assert_eq!(feed.has(Seq(seq), digest(seq)), is_kept, "{seq}");
        assert!(!feed.has(Seq(seq), digest(seq + 1)), "{seq}");
    }
    let text = digest(254).to_string();
    assert_eq!(text, "03030303");
    assert_eq!(Digest::parse(&text), Some(digest(3)));
    for text in ["", "3030303", "+3030303", "0303030A", "003030303"] {
        assert_eq!(Digest::parse(text), None, "{text}");
    }
}

#[test]
fn a_refusal_by_the_shield_is_one_commits_state_while_the_writer_works() {
    let mut world = World::new();
    let live = world.live.event(EVENT).expect("shown");
    let chart = Arc::clone(&live.event().chart);
    let pair = world.select(&named(&[0, 1]), 0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let torn: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let seats = pair.seats();
                let refusal = live
                    .shield
                    .try_seats(&chart, seats, &holder(9), Timestamp::ZERO);
                // The two seats are only ever held and released together.
                let half = refusal.filter(|refusal| refusal.conflicts.len() != 2);
                let half = half.map(|refusal| format!("{refusal:?}"));
                torn.lock().expect("no panic").extend(half);
            }
        });
        for _ in 0..2_000 {
            let command = world.hold(1, &named(&[0, 1]), 0);
            let Command::Hold(NewHold { hold, .. }) = command else {
                unreachable!()
            };
            world.apply(command).expect("free");
            let on = OnHold {
                hold,
                by: Authority::Staff,
                fence: None,
            };
            world.apply(Command::Release { on }).expect("held");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(torn.into_inner().expect("no panic"), Vec::<String>::new());
}

#[test]
fn an_event_that_cannot_be_read_is_refused_and_not_unknown() {
    let live = World::new().live;
    let (id, no) = (EventId::parse("sick-1").expect("a legal id"), EventNo(7));
    assert_eq!(live.find(&id).err(), Some(Rejection::EventNotFound));
    live.event_unreadable(no, &id);
    assert_eq!(live.find(&id).err(), Some(Rejection::ReadOnly));
    assert_eq!(live.event(no).err(), Some(Rejection::ReadOnly));
}

#[test]
fn live_holds_and_those_that_the_clock_ended_are_counted() {
    let mut world = World::new();
    let counts = |world: &World| {
        let metrics = &world.live.metrics;
        (metrics.holds_live.get(), metrics.holds_expired.get())
    };
    let hold = |world: &mut World, holder, seats: &[u8]| {
        let command = world.hold(holder, &named(seats), 0);
        world.apply(command)
    };
    hold(&mut world, 0, &[0, 1]).expect("they are free");
    assert_eq!(counts(&world), (1, 0));
    world.now = world.now.plus(Span::from_ms(3_600_000));
    // A takeover ends it, no sweeper.
    hold(&mut world, 1, &[1]).expect("its hold is over");
    assert_eq!(counts(&world), (1, 1));
    world.now = world.now.plus(Span::from_ms(3_600_000));
    world
        .apply(Command::Sweep { limit: 10 })
        .expect("it sweeps");
    assert_eq!(counts(&world), (0, 2));
    let selection = world.select(&named(&[0, 1]), 0);
    let (holder, booking) = (holder(0), BookingId::from_bits(world.mint()));
    let sell = Command::Sell {
        event: EVENT,
        booking,
        holder,
        selection,
        reference: None,
    };
    world.apply(sell).expect("they are free");
    assert_eq!(world.live.metrics.units_sold.get(), 2);
}
