//! An inventory under test, its clock, and everything that it ever committed. Dropping it judges:
//! the auditor must find nothing in the history and the counts must agree with the units.

use std::collections::BTreeMap;
use std::sync::Arc;

use soldonce_core::{
    Amount, Answer, Applied, AreaNo, AreaSpec, Auditor, Authority, Booking, BookingId, CallerId,
    Chart, ChartBuilder, Command, Commit, Currency, Difference, EventId, EventNo, Fence,
    GivenLines, History, Hold, HoldId, HoldTerms, Holder, HolderName, Inventory, NewEvent, NewHold,
    OnHold, Origin, PaymentReport, PaymentState, Policy, PolicyChange, Rejection, SeatSpec,
    Selection, Span, StateKind, Tally, Text, Timestamp, Together, TtlMax, Unit, UnitNo, Violation,
    Wish,
};

/// When every test begins.
pub(crate) const START: Timestamp = Timestamp::from_ms(1_000_000);

pub(crate) struct World {
    pub(crate) inventory: Inventory,
    pub(crate) now: Timestamp,
    pub(crate) event: EventNo,
    commits: BTreeMap<EventNo, Vec<Commit>>,
    holds: BTreeMap<HoldId, (EventNo, HoldTerms)>,
    minted: u128,
    /// Nothing once a policy changed on the way.
    terms: Option<Policy>,
    /// Its faults were told already.
    forgiven: bool,
}

impl World {
    pub(crate) fn new(chart: Chart, policy: Policy) -> Self {
        let mut world = Self {
            inventory: Inventory::new(),
            now: START,
            event: EventNo(0),
            commits: BTreeMap::new(),
            holds: BTreeMap::new(),
            minted: 0,
            terms: Some(policy.clone()),
            forgiven: false,
        };
        world.add_event("show", chart, policy);
        world
    }

    /// What a provider says that has all of a booking's money in `state`.
    pub(crate) fn report(&self, booking: BookingId, state: PaymentState) -> Command {
        let currency = Currency::parse("EUR").unwrap();
        let report = match self.inventory.booking(booking) {
            Some(found) => PaymentReport::whole(found, currency, state),
            None => PaymentReport {
                booking,
                state,
                amount: Amount::ZERO,
                currency,
                captured: Amount::ZERO,
                refunded: Amount::ZERO,
                bounced: Amount::ZERO,
                intent: None,
                settles: None,
            },
        };
        Command::Payment(Box::new(report))
    }

    pub(crate) fn pay(
        &mut self,
        booking: BookingId,
        state: PaymentState,
    ) -> Result<Applied, Rejection> {
        self.apply(self.report(booking, state))
    }

    pub(crate) fn add_event(&mut self, id: &str, chart: Chart, policy: Policy) -> EventNo {
        let prices = (1..).map(|n| Amount::price(n * 1_000).unwrap());
        let prices = chart.categories().iter().cloned().zip(prices).collect();
        let new = NewEvent {
            id: EventId::parse(id).unwrap(),
            name: text(id),
            starts_at: None,
            currency: Currency::parse("EUR").unwrap(),
            chart: Arc::new(chart),
            prices,
            policy,
            fingerprint: [0; 32],
        };
        self.apply(Command::CreateEvent(Box::new(new))).unwrap();
        self.inventory
            .find_event(&EventId::parse(id).unwrap())
            .unwrap()
    }

    pub(crate) fn apply(&mut self, command: Command) -> Result<Applied, Rejection> {
        if let Command::UpdateEvent { .. } = command {
            self.terms = None;
        }
        let origin = Origin::system("test");
        // Every command is tried and taken back first: if that left a trace, what follows differs.
        self.inventory.begin_trial(0);
        let tried = self.inventory.apply(self.now, &origin, command.clone());
        self.inventory.roll_back();
        let applied = self.inventory.apply(self.now, &origin, command);
        assert_eq!(
            format!("{tried:?}"),
            format!("{applied:?}"),
            "a trial leaves nothing"
        );
        let applied = applied?;
        self.note(&applied);
        Ok(applied)
    }

    /// An operator sets the clock back.
    pub(crate) fn correct_clock(&mut self, ms: u64) -> Applied {
        let by = Span::from_ms(ms);
        self.now = self.now.minus(by);
        let origin = Origin::system("test");
        let applied = self.inventory.correct_clock(self.now, by, &origin);
        let applied = applied.unwrap();
        self.note(&applied);
        applied
    }

    fn note(&mut self, applied: &Applied) {
        for commit in &applied.commits {
            self.commits
                .entry(commit.event)
                .or_default()
                .push(commit.clone());
        }
        for id in &applied.holds {
            let hold = self.inventory.hold(*id).unwrap();
            self.holds.insert(*id, (hold.event, hold.into()));
        }
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now = self.now.plus(Span::from_ms(ms));
    }

    pub(crate) fn chart(&self) -> Arc<Chart> {
        Arc::clone(&self.inventory.event(self.event).unwrap().chart)
    }

    pub(crate) fn mint_hold(&mut self) -> HoldId {
        self.minted += 1;
        HoldId::from_bits(self.minted)
    }

    pub(crate) fn mint_booking(&mut self) -> BookingId {
        self.minted += 1;
        BookingId::from_bits(self.minted)
    }

    /// Seats by id and places as `area*quantity`, separated by spaces.
    pub(crate) fn select(&self, names: &str) -> Selection {
        let (areas, seats): (Vec<&str>, Vec<&str>) = names
            .split_whitespace()
            .partition(|name| name.contains('*'));
        let areas = areas.into_iter().map(|name| {
            let (area, quantity) = name.split_once('*').unwrap();
            (area, quantity.parse().unwrap())
        });
        self.chart().select(seats, areas).unwrap()
    }

    pub(crate) fn unit(&self, name: &str) -> UnitNo {
        self.chart().find_unit(name).unwrap()
    }

    pub(crate) fn names(&self, units: impl IntoIterator<Item = UnitNo>) -> String {
        let chart = self.chart();
        let names: Vec<String> = units
            .into_iter()
            .map(|unit| chart.unit_name(unit).to_string())
            .collect();
        names.join(" ")
    }

    pub(crate) fn state(&self, name: &str) -> StateKind {
        let unit = self.unit(name);
        self.inventory
            .seating(self.event)
            .unwrap()
            .unit(unit)
            .state
            .kind()
    }

    /// Asks for a hold of named units.
    pub(crate) fn try_hold(&mut self, holder: &str, names: &str) -> Result<Applied, Rejection> {
        let wish = Wish::Named(self.select(names));
        self.try_wish(holder, wish)
    }

    pub(crate) fn try_best(&mut self, holder: &str, quantity: u32) -> Result<Applied, Rejection> {
        let wish = Wish::Best {
            quantity,
            category: None,
            together: Together::Preferred,
        };
        self.try_wish(holder, wish)
    }

    pub(crate) fn try_wish(&mut self, holder_name: &str, wish: Wish) -> Result<Applied, Rejection> {
        let new = NewHold {
            event: self.event,
            hold: self.mint_hold(),
            holder: holder(holder_name),
            wish,
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        };
        self.apply(Command::Hold(new))
    }

    /// Holds named units, which must succeed.
    pub(crate) fn hold(&mut self, holder: &str, names: &str) -> HoldId {
        held(&self.try_hold(holder, names).unwrap()).id
    }

    pub(crate) fn confirm(&mut self, hold: HoldId) -> Result<Applied, Rejection> {
        let booking = self.mint_booking();
        self.apply(Command::Confirm {
            on: on(hold),
            booking,
            reference: None,
        })
    }

    pub(crate) fn checkout(&mut self, hold: HoldId) -> Result<Applied, Rejection> {
        let booking = self.mint_booking();
        self.apply(Command::Checkout {
            on: on(hold),
            booking,
            reference: None,
            exchange: None,
        })
    }

    /// As [`World::checkout`], for lines of a booking and the difference.
    pub(crate) fn checkout_for(
        &mut self,
        hold: HoldId,
        given: GivenLines,
    ) -> Result<Applied, Rejection> {
        let booking = self.mint_booking();
        self.apply(Command::Checkout {
            on: on(hold),
            booking,
            reference: None,
            exchange: Some(given),
        })
    }

    pub(crate) fn abandon(&mut self, hold: HoldId) {
        let (on, booking) = (on(hold), None);
        self.apply(Command::Abandon { on, booking }).unwrap();
    }

    /// The event has this policy from now on.
    pub(crate) fn set(&mut self, policy: &Policy) {
        let (event, change) = (self.event, Box::new(PolicyChange::from(policy).into()));
        self.apply(Command::UpdateEvent { event, change }).unwrap();
    }

    pub(crate) fn sweep(&mut self) {
        self.apply(Command::Sweep { limit: usize::MAX }).unwrap();
    }

    /// Dropping it does not judge any more: the caller tells what is wrong.
    pub(crate) fn forgive(&mut self) {
        self.forgiven = true;
    }

    /// All that happened to the units of an event.
    pub(crate) fn history(&self, event: EventNo) -> History {
        let of_event = self.holds.values().filter(|(of, _)| *of == event);
        History {
            units: self.inventory.event(event).unwrap().chart.units(),
            terms: self.terms.clone(),
            holds: of_event.map(|(_, terms)| terms.clone()).collect(),
            commits: self.commits.get(&event).cloned().unwrap_or_default(),
        }
    }

    /// What the auditor says of all that happened.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        let events = self.commits.keys();
        events
            .flat_map(|event| Auditor::check(&self.history(*event)))
            .collect()
    }

    /// Every count that differs from a recount of the units.
    pub(crate) fn miscounted(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for event in self.inventory.events() {
            let seating = self.inventory.seating(event.no).unwrap();
            let all = recount(seating.units());
            if all != seating.tally() || all.total() != event.chart.units() {
                wrong.push(format!("{}: {:?} for {all:?}", event.id, seating.tally()));
            }
            let areas = (0..).map(AreaNo).zip(event.chart.areas());
            wrong.extend(areas.filter_map(|(number, area)| {
                let places = &seating.units()[area.first.index()..area.end().index()];
                let (told, counted) = (seating.area_tally(number), recount(places));
                (told != counted).then(|| format!("{}: {told:?} for {counted:?}", area.id))
            }));
        }
        wrong
    }
}

fn recount(units: &[Unit]) -> Tally {
    let count = |kind| {
        let of_kind = units.iter().filter(|unit| unit.state.kind() == kind);
        u32::try_from(of_kind.count()).unwrap()
    };
    Tally {
        free: count(StateKind::Free),
        held: count(StateKind::Held),
        sold: count(StateKind::Sold),
        blocked: count(StateKind::Blocked),
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.forgiven || std::thread::panicking() {
            return;
        }
        let violations = self.violations();
        assert!(
            violations.is_empty(),
            "the history is wrong: {violations:#?}"
        );
        let miscounted = self.miscounted();
        assert!(
            miscounted.is_empty(),
            "the counts are wrong: {miscounted:#?}"
        );
    }
}

/// A caller that speaks for every holder of these tests.
pub(crate) fn caller() -> CallerId {
    CallerId::from_bits(7)
}

pub(crate) fn holder(name: &str) -> Holder {
    Holder {
        caller: caller(),
        name: HolderName::parse(name).unwrap(),
    }
}

pub(crate) fn text(text: &str) -> Text {
    Text::parse(text).unwrap()
}

/// Acting on a hold by its secret, with any fence.
pub(crate) fn on(hold: HoldId) -> OnHold {
    OnHold {
        hold,
        by: Authority::Secret,
        fence: None,
    }
}

pub(crate) fn on_fence(hold: HoldId, fence: Fence) -> OnHold {
    OnHold {
        fence: Some(fence),
        ..on(hold)
    }
}

/// Lines of a booking for the units of a hold, if that costs nothing more.
pub(crate) fn exchange_of(booking: BookingId, units: Vec<UnitNo>, on: OnHold) -> Command {
    Command::Exchange {
        given: GivenLines { booking, units },
        on,
        difference: Difference::Unpaid,
    }
}

/// The hold of an answer.
pub(crate) fn held(applied: &Applied) -> &Hold {
    match &applied.answer {
        Answer::Held(hold) | Answer::OwnHold(hold) | Answer::Hold(hold) => hold,
        Answer::EventCreated(_)
        | Answer::Event(_)
        | Answer::Booked(_)
        | Answer::Booking(_)
        | Answer::Units(..)
        | Answer::Swept(_)
        | Answer::ClockCorrected(_) => panic!("no hold in {:?}", applied.answer),
    }
}

/// The booking of an answer.
pub(crate) fn booked(applied: &Applied) -> &Booking {
    match &applied.answer {
        Answer::Booked(booking) | Answer::Booking(booking) => booking,
        Answer::EventCreated(_)
        | Answer::Event(_)
        | Answer::Held(_)
        | Answer::OwnHold(_)
        | Answer::Hold(_)
        | Answer::Units(..)
        | Answer::Swept(_)
        | Answer::ClockCorrected(_) => panic!("no booking in {:?}", applied.answer),
    }
}

/// Rows A, B, .. of so many seats, and an area `floor` unless it has no places.
pub(crate) fn rows_and_floor(rows: &[u32], floor: u32) -> Chart {
    let mut chart = ChartBuilder::new("hall");
    chart.zone("main", None).unwrap();
    for (row, seats) in ('A'..='Z').zip(rows) {
        chart.row(&row.to_string()).unwrap();
        for seat in 1..=*seats {
            let id = format!("{row}-{seat}");
            let seat = SeatSpec {
                id: &id,
                label: None,
                category: "Seat",
                position: None,
            };
            chart.seat(&seat).unwrap();
        }
    }
    if floor > 0 {
        let area = AreaSpec {
            id: "floor",
            label: None,
            category: "Standing",
            capacity: floor,
            frame: None,
        };
        chart.area(&area).unwrap();
    }
    chart.build().unwrap()
}

/// Times that differ from each other, so that none is taken for another: a hold lives 60 s and at
/// most 180 s, a payment 30 s, a second try 20 s.
pub(crate) fn policy() -> Policy {
    Policy {
        hold_ttl: Span::from_ms(60_000),
        hold_max: Span::from_ms(180_000),
        payment_window: Span::from_ms(30_000),
        retry_window: Span::from_ms(20_000),
        ..Policy::default()
    }
}
