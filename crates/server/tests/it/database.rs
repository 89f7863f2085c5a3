//! A ledger in a private PostgreSQL under the server, by the test's clock.

use std::sync::Arc;

use soldonce_clock::{BootTime, Clock, Entropy, ManualClock, SleepFuture, SystemClock};
use soldonce_core::EventNo;
use soldonce_engine::Engine;
use soldonce_engine::ledger::Ledger;
use soldonce_engine::ledger::postgres::{
    Durability, PostgresLedger, PostgresOptions, TimeSource, migrate, verify,
};
use soldonce_engine::live::Live;
use soldonce_testkit::postgres::{Postgres, query};
use soldonce_testkit::runtime;

/// The commits of each event that were stored.
const STORED: &str =
    "SELECT event_no, sum(commands) FROM batches WHERE event_no >= 0 AND commands > 0 GROUP BY 1";

/// A database that goes with its test.
pub(crate) struct Database {
    server: Postgres,
}

impl Database {
    pub(crate) async fn open(
        clock: &ManualClock,
        entropy: &dyn Entropy,
        live: Arc<Live>,
    ) -> (Arc<dyn Ledger>, Self) {
        let server = Postgres::start().unwrap();
        let options = PostgresOptions {
            durability: Durability::Waived,
            time: TimeSource::Given,
            ..PostgresOptions::new(server.url())
        };
        migrate(&options).await.unwrap();
        let clock = Arc::new(Ticking(clock.clone()));
        let ledger = PostgresLedger::open(&options, clock, entropy, live);
        (Arc::new(ledger.await.unwrap()), Self { server })
    }

    /// Waits until the server shows every commit that is stored.
    pub(crate) async fn settle(&self, engine: &Engine) {
        let stored = query(&self.server.url(), STORED).unwrap();
        for line in stored.lines() {
            let (no, commits) = line.split_once('|').unwrap();
            let commits: u64 = commits.parse().unwrap();
            let event = engine.event_of_no(EventNo(no.parse().unwrap())).unwrap();
            let live = engine.live(&event.id).await.unwrap();
            let mut shown = live.feed.watch();
            shown.wait_for(|seq| seq.0 >= commits).await.unwrap();
        }
    }

    /// What `verify` finds wrong in it.
    pub(crate) fn violations(&self) -> Vec<String> {
        let options = PostgresOptions::new(self.server.url());
        // From a thread of its own: this one has a runtime.
        let report = std::thread::scope(|scope| {
            let judge = scope.spawn(|| {
                let runtime = runtime().unwrap();
                runtime.block_on(verify(&options, &mut |_| {})).unwrap()
            });
            judge.join().unwrap()
        });
        let found = report.findings.iter();
        found.map(|finding| format!("{finding:?}")).collect()
    }
}

/// The test's clock for a ledger whose tasks look at the database every few milliseconds: its pauses end when that
/// clock is moved, and also in real time.
struct Ticking(ManualClock);

impl Clock for Ticking {
    fn wall_ms(&self) -> i64 {
        self.0.wall_ms()
    }

    fn boot(&self) -> BootTime {
        self.0.boot()
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        let pause = until.since(self.0.boot());
        let end = SystemClock.boot().plus(pause);
        Box::pin(async move {
            tokio::select! {
                () = self.0.sleep_until(until) => {}
                () = SystemClock.sleep_until(end) => {}
            }
        })
    }
}
