//! The supervision alone, on the memory backend and a clock that is moved by hand: the times are
//! exact, and no process is started.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use soldonce_clock::{Clock, ManualClock};
use soldonce_lease::{Lease, Leases, LostReason};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::child::{Change, Supervised};
use super::signals::SignalSource;
use super::span::span;
use super::status::Status;
use super::supervise::{Ended, Supervisor, Times};

const TTL: Duration = Duration::from_secs(30);
const TIMES: Times = Times {
    grace: Duration::from_secs(5),
    margin: Duration::from_millis(1_500),
    look: Duration::from_secs(5),
};

/// Plays CMD: tells each signal with its time, and ends at those it does not ignore.
struct Actor {
    clock: ManualClock,
    heard: UnboundedSender<(Signal, Duration)>,
    ends_at: &'static [Signal],
    changes: (UnboundedSender<Change>, UnboundedReceiver<Change>),
    /// How long the runner is stopped with it.
    pause: Duration,
}

impl Supervised for Actor {
    async fn change(&mut self) -> Change {
        self.changes.1.recv().await.unwrap()
    }

    fn signal(&mut self, signal: Signal) {
        let at = self.clock.boot().since(soldonce_clock::BootTime::default());
        self.heard.send((signal, at)).unwrap();
        if self.ends_at.contains(&signal) {
            self.changes.0.send(Change::Ended(143)).unwrap();
        }
    }

    fn stop_along(&mut self) {
        self.signal(Signal::STOP);
        self.clock.advance(self.pause);
    }

    fn resume(&mut self) {
        self.signal(Signal::CONT);
    }
}

impl SignalSource for UnboundedReceiver<Signal> {
    async fn next(&mut self) -> Signal {
        match self.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

/// A stage for one run: the lease is not renewed, so only the clock ends it.
struct Stage {
    clock: ManualClock,
    lease: Lease,
    actor: Actor,
    heard: UnboundedReceiver<(Signal, Duration)>,
    send: UnboundedSender<Signal>,
    signals: UnboundedReceiver<Signal>,
    locks: Leases,
}

impl Stage {
    async fn new(ends_at: &'static [Signal]) -> Self {
        let clock = ManualClock::at(1_000_000);
        let locks = Leases::memory().clock(Arc::new(clock.clone()));
        let locks = locks.connect().await.unwrap();
        let request = locks.lease("nightly").ttl(TTL).manual_renewal();
        let lease = request.try_acquire().await.unwrap().unwrap();
        let (heard_by, heard) = unbounded_channel();
        let (send, signals) = unbounded_channel();
        let actor = Actor {
            clock: clock.clone(),
            heard: heard_by,
            ends_at,
            changes: unbounded_channel(),
            pause: Duration::ZERO,
        };
        Self {
            clock,
            lease,
            actor,
            heard,
            send,
            signals,
            locks,
        }
    }

    /// Supervises while `play` runs, which is given the means to move things.
    async fn play<F: Future<Output = ()>>(mut self, play: impl FnOnce(Hands) -> F) -> Ended {
        let hands = Hands {
            clock: self.clock.clone(),
            heard: self.heard,
            send: self.send,
            changes: self.actor.changes.0.clone(),
            locks: self.locks.clone(),
            lease: self.lease.handle(),
        };
        let mut supervisor = Supervisor {
            clock: &self.clock,
            lease: self.lease.handle(),
            child: &mut self.actor,
            signals: &mut self.signals,
            status: Status::unread(),
            times: TIMES,
        };
        let (ended, ()) = tokio::join!(supervisor.run(), play(hands));
        ended
    }
}

/// What a test moves.
struct Hands {
    clock: ManualClock,
    heard: UnboundedReceiver<(Signal, Duration)>,
    send: UnboundedSender<Signal>,
    changes: UnboundedSender<Change>,
    locks: Leases,
    lease: soldonce_lease::LeaseRef,
}

impl Hands {
    /// Lets the supervisor look at the new time.
    async fn advance(&mut self, span: Duration) {
        self.clock.advance(span);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    /// Returns the time from now to this much before the deadline.
    fn until(&self, before_deadline: Duration) -> Duration {
        self.lease.remaining().saturating_sub(before_deadline)
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_command_that_ends_by_itself_hears_nothing() {
    let stage = Stage::new(&[]).await;
    let ended = stage.play(async |mut hands: Hands| {
        hands.advance(Duration::from_secs(10)).await;
        assert!(hands.heard.is_empty());
        hands.changes.send(Change::Ended(7)).unwrap();
    });
    assert_eq!(ended.await, Ended::Alone(7));
}

#[tokio::test(flavor = "current_thread")]
async fn a_command_is_asked_to_end_a_grace_before_and_killed_a_margin_before_the_deadline() {
    let stage = Stage::new(&[Signal::KILL]).await;
    let ended = stage.play(async |mut hands: Hands| {
        let asked_at = TIMES.grace + TIMES.margin;
        let step = hands.until(asked_at + Duration::from_millis(1));
        hands.advance(step).await;
        assert!(hands.heard.is_empty(), "a millisecond early");
        hands.advance(Duration::from_millis(1)).await;
        assert_eq!(hands.heard.try_recv().unwrap().0, Signal::TERM);
        hands.advance(Duration::from_millis(4_999)).await;
        assert!(hands.heard.is_empty(), "killed a millisecond early");
        hands.advance(Duration::from_millis(1)).await;
        assert_eq!(hands.heard.try_recv().unwrap().0, Signal::KILL);
        assert_eq!(hands.lease.remaining(), TIMES.margin);
    });
    assert_eq!(ended.await, Ended::ForLease(None));
}

#[tokio::test(flavor = "current_thread")]
async fn a_command_that_obeys_is_not_killed() {
    let stage = Stage::new(&[Signal::TERM]).await;
    let ended = stage.play(async |mut hands: Hands| {
        let step = hands.until(TIMES.grace + TIMES.margin);
        hands.advance(step).await;
        assert_eq!(hands.heard.try_recv().unwrap().0, Signal::TERM);
        assert!(hands.heard.is_empty());
    });
    assert_eq!(ended.await, Ended::ForLease(None));
}

#[tokio::test(flavor = "current_thread")]
async fn a_runner_that_was_stopped_kills_at_once() {
    let stage = Stage::new(&[Signal::KILL]).await;
    let ended = stage.play(async |mut hands: Hands| {
        hands.advance(TTL * 2).await;
        assert_eq!(hands.heard.try_recv().unwrap().0, Signal::TERM);
        assert_eq!(hands.heard.try_recv().unwrap(), (Signal::KILL, TTL * 2));
    });
    assert_eq!(ended.await, Ended::ForLease(Some(LostReason::Deadline)));
}

#[tokio::test(flavor = "current_thread")]
async fn a_lease_taken_away_leaves_a_second_at_most() {
    let stage = Stage::new(&[Signal::KILL]).await;
    let lease_ends = |lease: &Lease| lease.report_overtaken(lease.token_for_logs().unwrap());
    lease_ends(&stage.lease);
    let ended = stage.play(async |mut hands: Hands| {
        hands.advance(Duration::from_millis(999)).await;
        assert_eq!(hands.heard.try_recv().unwrap().0, Signal::TERM);
        assert!(hands.heard.is_empty());
        hands.advance(Duration::from_millis(1)).await;
        let second = Duration::from_secs(1);
        assert_eq!(hands.heard.try_recv().unwrap(), (Signal::KILL, second));
        drop(hands.locks);
    });
    assert!(matches!(
        ended.await,
        Ended::ForLease(Some(LostReason::Overtaken { .. }))
    ));
}

#[tokio::test(flavor = "current_thread")]
async fn signals_are_passed_on_and_the_command_decides() {
    let stage = Stage::new(&[Signal::INT]).await;
    let ended = stage.play(async |mut hands: Hands| {
        hands.send.send(Signal::HUP).unwrap();
        hands.send.send(Signal::INT).unwrap();
        hands.advance(Duration::ZERO).await;
        let none = Duration::ZERO;
        assert_eq!(hands.heard.recv().await, Some((Signal::HUP, none)));
        assert_eq!(hands.heard.recv().await, Some((Signal::INT, none)));
    });
    assert_eq!(ended.await, Ended::Alone(143));
}

#[tokio::test(flavor = "current_thread")]
async fn a_stopped_command_stops_the_runner_and_goes_on_under_its_lease() {
    let stage = Stage::new(&[]).await;
    let ended = stage.play(async |mut hands: Hands| {
        hands.changes.send(Change::Stopped).unwrap();
        hands.advance(Duration::ZERO).await;
        assert_eq!(hands.heard.try_recv().unwrap().0, Signal::STOP);
        assert_eq!(hands.heard.try_recv().unwrap().0, Signal::CONT);
        hands.changes.send(Change::Ended(7)).unwrap();
    });
    assert_eq!(ended.await, Ended::Alone(7));
}

#[tokio::test(flavor = "current_thread")]
async fn a_command_that_was_stopped_for_longer_than_its_lease_never_goes_on() {
    let mut stage = Stage::new(&[Signal::KILL]).await;
    stage.actor.pause = TTL;
    let ended = stage.play(async |mut hands: Hands| {
        hands.changes.send(Change::Stopped).unwrap();
        hands.advance(Duration::ZERO).await;
        let heard = std::iter::from_fn(|| hands.heard.try_recv().ok());
        let heard: Vec<Signal> = heard.map(|(signal, _)| signal).collect();
        assert_eq!(heard, [Signal::STOP, Signal::TERM, Signal::KILL]);
    });
    assert_eq!(ended.await, Ended::ForLease(Some(LostReason::Deadline)));
}

#[test]
fn spans_are_read() {
    assert_eq!(span("1500ms"), Ok(Duration::from_millis(1_500)));
    assert_eq!(span("24h"), Ok(Duration::from_hours(24)));
    assert_eq!(span("0"), Ok(Duration::ZERO));
    for bad in [
        "",
        "5",
        "s",
        "5d",
        "-1s",
        "99999999999999999999s",
        "18446744073709551615h",
    ] {
        assert!(span(bad).is_err(), "{bad}");
    }
}
