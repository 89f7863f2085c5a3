//! The server dies at every point of the saga, one point after the other: before and after each
//! commit and each call of the provider. Its clients ask again with the same keys, another server
//! goes on, and in the end the money is right.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{Amount, Auditor, BookingId, BookingState, LineState, PaymentState};
use soldonce_engine::{EngineError, ExchangeAsk, GivenAsk, NamedUnits};
use tokio::task::JoinSet;

use super::mortal::Heart;
use super::rig::{PRICE, Paying, Place, Rig, Store};

const VISA: &str = "pm_card_visa";
const DECLINED: &str = "pm_card_chargeDeclined";
/// Ledgers at work at the same time.
const TASKS: usize = 4;

fn seat(name: &'static str) -> NamedUnits<'static> {
    NamedUnits {
        seats: vec![name.into()],
        ..NamedUnits::default()
    }
}

/// What buyers do. Told again it asks the same with the same keys.
struct Story<'a> {
    rig: &'a Rig,
}

impl Story<'_> {
    async fn tell(&self) -> Vec<BookingId> {
        let mut begun = vec![
            self.gives_some_back().await,
            self.pays_late().await,
            self.is_declined_first().await,
            self.gives_up().await,
            self.changes_seats().await,
            self.pays_too_late().await,
        ];
        begun.extend(self.changes_for_more().await);
        begun
    }

    async fn begins(&self, who: &str, seats: &[&str]) -> Paying {
        let call = self.rig.call_named(&format!("{who} holds"));
        let hold = self.rig.hold_by(&call, who, seats).await.unwrap();
        let call = self.rig.call_named(&format!("{who} pays"));
        self.rig.checkout_by(&call, hold).await.unwrap()
    }

    /// It may have been paid in an earlier life.
    async fn pays(&self, paying: &Paying, card: &str) {
        self.rig.fake.pay(&paying.intent, card).await.ok();
        self.rig.take_notices().await;
    }

    async fn buys(&self, who: &str, seats: &[&str]) -> Paying {
        let paying = self.begins(who, seats).await;
        self.pays(&paying, VISA).await;
        self.until(paying.booking, |state| state >= PaymentState::Captured)
            .await;
        paying
    }

    async fn until(&self, booking: BookingId, is_so: impl Fn(PaymentState) -> bool) {
        for look in 1_u32.. {
            if is_so(self.rig.payment_state(booking).await) {
                return;
            }
            self.rig.take_notices().await;
            // As the reconciler does now and then: notices may be gone with a server.
            if look.is_multiple_of(20) {
                self.rig.mend_all().await;
            }
            let soon = SystemClock.boot().plus(Duration::from_millis(3));
            SystemClock.sleep_until(soon).await;
        }
    }

    async fn gives_some_back(&self) -> BookingId {
        let Paying { booking, .. } = self.buys("ann", &["A-1", "A-2"]).await;
        let engine = &self.rig.engine;
        let call = self.rig.call_named("ann cancels");
        engine.cancel(&call, booking, &seat("A-1")).await.unwrap();
        let call = self.rig.call_named("ann is refunded");
        let amount = Amount::from_minor(PRICE);
        engine.refund(&call, booking, amount).await.unwrap();
        self.until(booking, |state| state == PaymentState::Refunded)
            .await;
        booking
    }

    /// The hold is gone when the money comes.
    async fn pays_late(&self) -> BookingId {
        let call = self.rig.call_named("bob holds");
        let hold = self.rig.hold_by(&call, "bob", &["A-3"]).await.unwrap();
        let paying = self.begins("bob", &["A-3"]).await;
        let call = self.rig.call();
        // In a later life it is over already.
        let released = self.rig.engine.release(&call, hold, None).await;
        assert!(matches!(released, Ok(_) | Err(EngineError::Rejected(_))));
        self.pays(&paying, VISA).await;
        paying.booking
    }

    async fn is_declined_first(&self) -> BookingId {
        let paying = self.begins("cyd", &["A-4"]).await;
        self.pays(&paying, DECLINED).await;
        self.until(paying.booking, |state| state != PaymentState::Created)
            .await;
        self.pays(&paying, VISA).await;
        paying.booking
    }

    async fn gives_up(&self) -> BookingId {
        let call = self.rig.call_named("dan holds");
        let hold = self.rig.hold_by(&call, "dan", &["A-5"]).await.unwrap();
        let paying = self.begins("dan", &["A-5"]).await;
        let call = self.rig.call();
        self.rig
            .engine
            .abandon(&call, hold, None, None)
            .await
            .unwrap();
        paying.booking
    }

    async fn changes_seats(&self) -> BookingId {
        let Paying { booking, .. } = self.buys("eve", &["B-1"]).await;
        let call = self.rig.call_named("eve holds another");
        let hold = self.rig.hold_by(&call, "eve", &["B-2"]).await.unwrap();
        let ask = ExchangeAsk {
            given: GivenAsk {
                booking,
                release: seat("B-1"),
            },
            hold,
            fence: None,
        };
        let call = self.rig.call_named("eve changes");
        self.rig.engine.exchange(&call, ask).await.unwrap();
        booking
    }

    /// Pays the difference, and then wants all the money back, which two payments have.
    async fn changes_for_more(&self) -> [BookingId; 2] {
        let Paying { booking: first, .. } = self.buys("hal", &["B-4"]).await;
        let call = self.rig.call_named("hal holds more");
        let hold = self.rig.hold_by(&call, "hal", &["B-1", "B-5"]).await;
        let call = self.rig.call_named("hal pays the difference");
        let given = GivenAsk {
            booking: first,
            release: seat("B-4"),
        };
        let paying = self.rig.checkout_for(&call, hold.unwrap(), Some(given));
        let paying = paying.await.unwrap();
        self.pays(&paying, VISA).await;
        self.until(paying.booking, |state| state >= PaymentState::Captured)
            .await;
        let all = NamedUnits::default();
        let call = self.rig.call_named("hal cancels");
        let cancelled = self.rig.engine.cancel(&call, paying.booking, &all);
        cancelled.await.unwrap();
        [first, paying.booking]
    }

    /// And another buyer has the seat.
    async fn pays_too_late(&self) -> BookingId {
        let call = self.rig.call_named("fay holds");
        let hold = self.rig.hold_by(&call, "fay", &["B-3"]).await.unwrap();
        let paying = self.begins("fay", &["B-3"]).await;
        let call = self.rig.call();
        let released = self.rig.engine.release(&call, hold, None).await;
        assert!(matches!(released, Ok(_) | Err(EngineError::Rejected(_))));
        let call = self.rig.call_named("gus holds");
        self.rig.hold_by(&call, "gus", &["B-3"]).await.unwrap();
        self.pays(&paying, VISA).await;
        paying.booking
    }
}

/// How one story ended.
pub(super) struct StoryEnd {
    has_died: bool,
    pub(super) wrongs: Vec<String>,
}

/// Its server dies when it comes to `point` for the `nth` time, counted from 0.
async fn tell(place: &Arc<Place>, event: &str, point: &str, nth: u32) -> StoryEnd {
    let mut rig = Rig::at(Arc::clone(place), event, |_| {}).await;
    let heart = Heart::until(point, nth);
    rig.replace_server(&heart).await;
    rig.run_outbox();
    let story = Story { rig: &rig };
    let has_died = tokio::select! {
        _ = story.tell() => false,
        () = heart.stopped() => true,
    };
    rig.replace_server(&Heart::immortal()).await;
    rig.run_outbox();
    let begun = Story { rig: &rig }.tell().await;
    rig.settle().await;
    let mut wrongs = heart.wrongs();
    wrongs.extend(judge(&rig, &begun).await);
    StoryEnd { has_died, wrongs }
}

/// What is wrong in the end, in words.
async fn judge(rig: &Rig, begun: &[BookingId]) -> Vec<String> {
    let mut wrongs = Vec::new();
    let mut sold = 0;
    for id in begun {
        let booking = rig.booking(*id).await;
        if matches!(
            booking.state,
            BookingState::PendingPayment | BookingState::NeedsRefund
        ) {
            wrongs.push(format!("{id}: still {:?}", booking.state));
        }
        let lines = booking.lines.iter();
        let own = lines.filter(|line| line.state == LineState::Sold).count();
        // Ann has a seat and all of the money back.
        let is_given = Some(id) == begun.first();
        sold += if is_given {
            0
        } else {
            PRICE * i64::try_from(own).unwrap()
        };
        wrongs.extend(rig.differences(&booking).await);
    }
    if rig.kept() != sold {
        wrongs.push(format!("{} is kept, {sold} was sold", rig.kept()));
    }
    if rig.reserved() != 0 {
        wrongs.push(format!("{} is still reserved", rig.reserved()));
    }
    let violations = Auditor::check(&rig.history().await);
    wrongs.extend(violations.iter().map(|violation| format!("{violation:?}")));
    wrongs
}

/// Kills servers at the points that are left: at the first time, the second time, and so on, at most
/// `times` times. How many died.
async fn tell_all(store: Store, points: Arc<Mutex<Vec<String>>>, times: u32) -> u32 {
    let place = Place::new(store).await;
    let mut deaths = 0;
    loop {
        let Some(point) = points.lock().unwrap().pop() else {
            return deaths;
        };
        for nth in 0..times {
            let event = format!("{}-{nth}", point.replace(' ', "-"));
            let told = tell(&place, &event, &point, nth).await;
            assert_eq!(told.wrongs, [""; 0], "{store:?}: {point}, {nth}");
            assert!(told.has_died || nth > 0, "{store:?}: never {point}");
            if !told.has_died {
                break;
            }
            deaths += 1;
        }
    }
}

/// How many died.
async fn die_everywhere(store: Store, times: u32) -> u32 {
    let points = Arc::new(Mutex::new(every_point()));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        tasks.spawn(tell_all(store, Arc::clone(&points), times));
    }
    tasks.join_all().await.into_iter().sum()
}

fn every_point() -> Vec<String> {
    let calls = ["create", "retrieve", "capture", "cancel", "refund"];
    let commits = [
        "checkout",
        "abandon",
        "cancel",
        "refund",
        "exchange",
        "release",
        "report of a notice",
        "report of a step",
    ];
    let calls = calls.map(|call| format!("the call of {call}"));
    let commits = commits.map(|commit| format!("the commit of {commit}"));
    let steps: Vec<String> = calls.into_iter().chain(commits).collect();
    let both = |step: &String| [format!("before {step}"), format!("after {step}")];
    steps.iter().flat_map(both).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_anywhere_leaves_the_money_right_on_sqlite() {
    assert!(die_everywhere(Store::Sqlite, 12).await > 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_anywhere_leaves_the_money_right_on_postgres() {
    assert!(die_everywhere(Store::Postgres, 1).await >= 26);
}
