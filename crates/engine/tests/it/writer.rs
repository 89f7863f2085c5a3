//! The writer's thread under stress: a queue that is full, a panic, callers who go away; and the length of its log.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use rusqlite::Connection;
use soldonce_clock::{Clock, ManualClock, SeededEntropy, SystemClock};
use soldonce_core::{Applied, Command, Inventory, Rejection, Timestamp};
use soldonce_engine::keys::KeyId;
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::ledger::{Ledger, Observer};
use soldonce_testkit::TempFolder;

use crate::ledgers::{Recorder, START_MS, TestLedger, expect_taken, open_in, transaction};
use crate::sqlite::nth_change;

/// Does with each batch what the test wants, on the writer's own thread.
#[derive(Default)]
struct Meddler {
    what: Mutex<What>,
    changed: Condvar,
    /// How many commands each batch had.
    batches: Mutex<Vec<usize>>,
    failure: Mutex<String>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum What {
    #[default]
    Nothing,
    Wait,
    Panic,
}

impl Meddler {
    fn now(&self, what: What) {
        *self.what.lock().unwrap() = what;
        self.changed.notify_all();
    }
}

impl Observer for Meddler {
    fn committed(&self, _inventory: &Inventory, _applied: &[Applied]) {
        let what = *self.what.lock().unwrap();
        assert!(what != What::Panic, "the test wants it");
        let what = self.what.lock().unwrap();
        drop(
            self.changed
                .wait_while(what, |what| *what == What::Wait)
                .unwrap(),
        );
    }

    fn batch(&self, commands: usize, _: Duration) {
        self.batches.lock().unwrap().push(commands);
    }

    fn failed(&self, why: &str) {
        self.failure.lock().unwrap().push_str(why);
    }
}

/// A ledger with one event, whose writer the test can stop.
async fn meddled(folder: &TempFolder) -> (TestLedger, Arc<Meddler>, Arc<soldonce_core::Event>) {
    let meddler = Arc::new(Meddler::default());
    let clock = Arc::new(ManualClock::at(START_MS));
    let options = SqliteOptions::new(folder.path());
    let observer = Arc::clone(&meddler) as Arc<dyn Observer>;
    let ledger = SqliteLedger::open(&options, clock, &SeededEntropy::new(7), observer).unwrap();
    let test = TestLedger::memory().with_ledger(ledger);
    let event = test.event().await;
    (test, meddler, event)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_is_told_at_once_and_what_waits_is_answered() {
    let folder = TempFolder::new().unwrap();
    let (test, meddler, event) = meddled(&folder).await;
    meddler.now(What::Wait);
    let mut waiting = Vec::new();
    // The batch that the writer stands in, the queue behind it, and one too many.
    let refused = loop {
        let command = test.hold_command(&event, "ann", &["A-1"]);
        let mut answer = test.ledger.transact(transaction(command, None));
        let poll = std::future::poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await;
        match poll {
            Poll::Ready(done) => break done.unwrap_err(),
            Poll::Pending => waiting.push(answer),
        }
        assert!(waiting.len() < 100_000, "the queue has no end");
    };
    assert_eq!(refused, Rejection::Overloaded);
    assert!(test.ledger.is_writable());
    meddler.now(What::Nothing);
    for answer in waiting {
        answer.await.unwrap();
    }
    test.hold(&event, "bob", &["A-2"]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_the_writer_is_stored_together() {
    let folder = TempFolder::new().unwrap();
    let (test, meddler, event) = meddled(&folder).await;
    meddler.now(What::Wait);
    // More than two batches, and the writer stands in the first.
    let ask = |n| {
        let (command, key) = nth_change(&event, 0, n);
        test.ledger.transact(transaction(command, Some(key)))
    };
    let waiting: Vec<_> = (0..1_034).map(ask).collect();
    meddler.now(What::Nothing);
    for answer in waiting {
        answer.await.unwrap();
    }
    let batches = meddler.batches.lock().unwrap();
    assert_eq!(batches.iter().max(), Some(&512), "{batches:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_the_writer_ends_the_writing_and_loses_nothing() {
    let folder = TempFolder::new().unwrap();
    let (test, meddler, event) = meddled(&folder).await;
    let kept = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    meddler.now(What::Panic);
    // The panic comes after the commit: no caller is told, and it is there.
    let refused = test.hold(&event, "bob", &["A-2"]).await.unwrap_err();
    assert_eq!(refused, Rejection::OutcomeUnknown);
    assert!(!test.ledger.is_writable());
    let why = meddler.failure.lock().unwrap().clone();
    assert!(why.ends_with("the test wants it"), "{why}");
    assert_eq!(test.confirm(&kept).await.unwrap_err(), Rejection::ReadOnly);
    test.ledger.close().await;
    drop(test);
    meddler.now(What::Nothing);
    let options = SqliteOptions::new(folder.path());
    let clock = Arc::new(ManualClock::at(START_MS));
    let observer = meddler as Arc<dyn Observer>;
    let again = SqliteLedger::open(&options, clock, &SeededEntropy::new(7), observer).unwrap();
    let commits = again.history(event.id.clone()).await.unwrap().commits;
    assert_eq!(commits.len(), 2);
}

/// Stops the thread that wakes it until the test goes on.
struct Stopping(Barrier);

impl Wake for Stopping {
    fn wake(self: Arc<Self>) {
        self.0.wait();
        self.0.wait();
    }
}

/// A job that is no command has its answer on the writer's thread, before that ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_hears_of_a_fault_finds_the_ledger_read_only() {
    let folder = TempFolder::new().unwrap();
    let (test, meddler, event) = meddled(&folder).await;
    let by_hand = Connection::open(folder.path().join("ledger.sqlite")).unwrap();
    by_hand.execute_batch("DROP TABLE api_keys").unwrap();
    meddler.now(What::Wait);
    let command = test.hold_command(&event, "ann", &["A-1"]);
    let held = test.ledger.transact(transaction(command, None));
    let at = test.ledger.now();
    let mut revoked = test.ledger.revoke_key(KeyId::from_bits(4), at);
    let writer = Arc::new(Stopping(Barrier::new(2)));
    let waker = Waker::from(Arc::clone(&writer));
    let mut cx = Context::from_waker(&waker);
    assert!(revoked.as_mut().poll(&mut cx).is_pending());
    meddler.now(What::Nothing);
    writer.0.wait();
    let refused = Poll::Ready(Err(Rejection::OutcomeUnknown));
    assert_eq!(revoked.as_mut().poll(&mut cx), refused);
    assert!(!test.ledger.is_writable());
    writer.0.wait();
    held.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_away_has_his_command_carried_out_all_the_same() {
    let test = TestLedger::sqlite();
    let event = test.event().await;
    let command = test.hold_command(&event, "ann", &["A-1"]);
    drop(test.ledger.transact(transaction(command, None)));
    let refused = test.hold(&event, "bob", &["A-1"]).await;
    expect_taken(&refused);
    let swept = test.ask(Command::Sweep { limit: 1 }).await;
    swept.unwrap();
}

/// Reads how often the log began anew: all of it was in the database file before.
fn log_number(folder: &Path) -> u32 {
    let mut header = [0; 16];
    let mut log = File::open(folder.join("ledger.sqlite-wal")).unwrap();
    log.read_exact(&mut header).unwrap();
    u32::from_be_bytes(*header.last_chunk().unwrap())
}

/// Pages at which the log is moved.
const LOG_PAGES: u32 = 300;

#[tokio::test]
async fn jobs_that_are_no_commands_keep_the_log_short_too() {
    let folder = TempFolder::new().unwrap();
    let options = SqliteOptions {
        log_pages: LOG_PAGES,
        ..SqliteOptions::new(folder.path())
    };
    let (clock, recorder) = (ManualClock::at(START_MS), Arc::new(Recorder::default()));
    let ledger = open_in(&options, &clock, &recorder).unwrap();
    let commit = async || {
        ledger
            .webhooks()
            .forget_deliveries(Timestamp::ZERO, 1)
            .await
    };
    commit().await.unwrap();
    let first = log_number(folder.path());
    let end = SystemClock.boot().plus(Duration::from_secs(20));
    while log_number(folder.path()) == first {
        assert!(SystemClock.boot() < end, "the log only grows");
        commit().await.unwrap();
    }
    // A log that began anew has the length that it had.
    let log = folder.path().join("ledger.sqlite-wal").metadata().unwrap();
    let least = u64::from(LOG_PAGES) * 4_096;
    assert!(log.len() > least, "a log of {} bytes was moved", log.len());
    ledger.close().await;
}
