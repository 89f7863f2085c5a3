//! Epochs in a file: never given twice, not to another process, and not when one is killed.

use std::fs;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::{Fut, Memory};
use soldonce_lease::{
    AcquireError, BackendError, BootTime, Clock, EPOCH_MAX, FenceError, FenceKind, FenceSource,
    FencingToken, FileFence, InvalidRequest, Leases, ManualClock, Namespace, SleepFuture,
    SystemClock,
};
use soldonce_testkit::{PATIENCE, TempFolder};
use tokio::task::JoinSet;

const MOST: u64 = FenceKind::Epoch.most();

#[tokio::test]
async fn numbers_begin_above_what_is_in_use_and_rise() {
    let folder = TempFolder::new().unwrap();
    let epochs = FileFence::new(folder.path().join("made/on/demand"));
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 0).await, Ok(1));
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 0).await, Ok(2));
    assert_eq!(
        epochs.next(FenceKind::Epoch, "app", 40).await,
        Ok(41),
        "above is respected"
    );
    assert_eq!(
        epochs.next(FenceKind::Epoch, "app", 7).await,
        Ok(42),
        "and what was given too"
    );
    assert_eq!(
        epochs.next(FenceKind::Epoch, "other", 0).await,
        Ok(1),
        "a namespace by itself"
    );
    let again = FileFence::new(folder.path().join("made/on/demand"));
    assert_eq!(
        again.next(FenceKind::Epoch, "app", 0).await,
        Ok(43),
        "after a restart"
    );
    assert!(
        again
            .next(FenceKind::Epoch, "No Namespace", 0)
            .await
            .is_err()
    );
}

/// A slip of a target or of a caller must not end the tokens of a namespace.
#[tokio::test]
async fn a_floor_that_no_lease_can_have_had_uses_up_no_epoch() {
    let folder = TempFolder::new().unwrap();
    let leases = Leases::memory().fence(FileFence::new(folder.path()));
    let leases = leases.connect().await.unwrap();
    let absurd = FencingToken::from_parts(EPOCH_MAX - 1, 0).unwrap();
    let invalid = Err(AcquireError::Invalid(InvalidRequest::Floor(absurd)));
    let asked = leases.lease("a").floor(absurd).try_acquire().await;
    assert_eq!(asked.map(drop), invalid);
    let lease = leases.lease("b").acquire().await.unwrap();
    lease.report_overtaken(absurd);
    assert_eq!(leases.lease("b").acquire().await.map(drop), invalid);
    let token = leases.lease("c").acquire().await.unwrap().token().unwrap();
    assert_eq!(token.epoch(), 1);
    let floor = FencingToken::from_parts(7, 5).unwrap();
    let healed = leases.lease("d").floor(floor).acquire().await.unwrap();
    assert_eq!(healed.token().unwrap().epoch(), 8);
}

/// Gives a number that is above all epochs, as a source of the user's own may.
struct TooHigh;

impl FenceSource for TooHigh {
    fn next<'a>(&'a self, _: FenceKind, _: &'a str, _: u64) -> Fut<'a, Result<u64, FenceError>> {
        Box::pin(std::future::ready(Ok(MOST + 1)))
    }
}

#[tokio::test]
async fn a_number_that_is_no_epoch_is_not_taken() {
    let connected = Leases::memory().fence(TooHigh).connect().await;
    let error = connected.unwrap_err();
    assert!(matches!(error, BackendError::Config(_)), "{error:?}");
}

#[tokio::test]
async fn a_backend_that_exists_takes_no_fence_source_and_no_namespace() {
    let leases = || Leases::backend(Arc::new(Memory::new(Arc::new(SystemClock))));
    for (builder, setting) in [
        (leases().fence(TooHigh), ".fence("),
        (leases().namespace("app"), ".namespace("),
        (leases().namespace("local"), ".namespace("),
    ] {
        let error = builder.connect().await.unwrap_err();
        let names = matches!(&error, BackendError::Config(why) if why.contains(setting));
        assert!(names, "{error:?}");
    }
    assert!(leases().no_fencing().connect().await.is_ok());
}

/// A clock on which no wait comes to its end: the disk may stall while another client has the lock.
struct Endless;

impl Clock for Endless {
    fn wall_ms(&self) -> i64 {
        SystemClock.wall_ms()
    }

    fn boot(&self) -> BootTime {
        BootTime::default()
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        let pause = until.since(self.boot());
        SystemClock.sleep_until(SystemClock.boot().plus(pause))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_clients_race_and_no_number_is_given_twice() {
    let folder = TempFolder::new().unwrap();
    let mut clients = JoinSet::new();
    for _ in 0..10 {
        let epochs = FileFence::new(folder.path()).clock(Arc::new(Endless));
        clients.spawn(take_twenty(epochs));
    }
    let mut all = clients.join_all().await.concat();
    all.sort_unstable();
    assert_eq!(all, (1..=200).collect::<Vec<u64>>());
}

async fn take_twenty(epochs: FileFence) -> Vec<u64> {
    let mut given = Vec::new();
    for _ in 0..20 {
        given.push(epochs.next(FenceKind::Epoch, "app", 0).await.unwrap());
    }
    assert!(given.is_sorted(), "each client sees them rise");
    given
}

#[tokio::test]
async fn the_last_epoch_is_given_and_none_after_it() {
    let folder = TempFolder::new().unwrap();
    let epochs = FileFence::new(folder.path());
    assert_eq!(
        epochs.next(FenceKind::Epoch, "app", MOST - 1).await,
        Ok(MOST)
    );
    let none = Err(FenceError::Exhausted { above: MOST });
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 0).await, none);
    assert_eq!(epochs.next(FenceKind::Epoch, "other", MOST).await, none);
    assert_eq!(
        epochs.next(FenceKind::Epoch, "other", 0).await,
        Ok(1),
        "a refusal takes nothing"
    );
}

#[tokio::test]
async fn a_damaged_file_is_an_error_that_names_the_mend() {
    let folder = TempFolder::new().unwrap();
    let epochs = FileFence::new(folder.path());
    epochs.next(FenceKind::Epoch, "app", 99).await.unwrap();
    let file = folder.path().join("app.epoch");
    let whole = fs::read(&file).unwrap();
    for damaged in [&b""[..], &whole[..whole.len() / 2], b"\xff\0nonsense"] {
        fs::write(&file, damaged).unwrap();
        let error = epochs
            .next(FenceKind::Epoch, "app", 0)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("FileFence::repair"), "{error}");
    }
    let namespace = Namespace::new("app").unwrap();
    epochs.repair(FenceKind::Epoch, &namespace, 100).unwrap();
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 0).await, Ok(101));
    assert!(
        epochs
            .repair(FenceKind::Epoch, &namespace, MOST + 1)
            .is_err()
    );
}

#[tokio::test]
async fn whole_tokens_begin_with_an_epoch_and_rise_over_clients() {
    let folder = TempFolder::new().unwrap();
    let first = 1 << 32;
    let tokens = FileFence::new(folder.path());
    assert_eq!(tokens.next(FenceKind::Token, "app", 0).await, Ok(first + 1));
    let again = FileFence::new(folder.path());
    assert_eq!(
        again.next(FenceKind::Token, "app", first).await,
        Ok(first + 2),
        "a restart"
    );
    assert_eq!(
        again.next(FenceKind::Token, "app", 5 * first).await,
        Ok(5 * first + 1)
    );
    assert_eq!(
        tokens.next(FenceKind::Token, "app", 0).await,
        Ok(5 * first + 2)
    );
    let epochs = FileFence::new(folder.path());
    assert_eq!(
        epochs.next(FenceKind::Epoch, "app", 0).await,
        Ok(1),
        "files of their own"
    );
    let last = (1 << 53) - 1;
    assert_eq!(
        tokens.next(FenceKind::Token, "app", last - 1).await,
        Ok(last)
    );
    let none = Err(FenceError::Exhausted { above: last });
    assert_eq!(tokens.next(FenceKind::Token, "app", 0).await, none);
    fs::write(folder.path().join("app.token"), "nonsense").unwrap();
    let error = tokens
        .next(FenceKind::Token, "app", 0)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("FileFence::repair"), "{error}");
    let namespace = Namespace::new("app").unwrap();
    tokens
        .repair(FenceKind::Token, &namespace, 7 * first + 7)
        .unwrap();
    assert_eq!(
        tokens.next(FenceKind::Token, "app", 0).await,
        Ok(7 * first + 8)
    );
}

#[tokio::test]
async fn a_file_left_by_a_crash_before_the_rename_means_nothing() {
    let folder = TempFolder::new().unwrap();
    let epochs = FileFence::new(folder.path());
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 0).await, Ok(1));
    fs::write(folder.path().join("app.epoch.new"), "soldonce-lease-ep").unwrap();
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 0).await, Ok(2));
}

#[tokio::test]
async fn an_answer_that_nobody_took_is_not_given_again() {
    let folder = TempFolder::new().unwrap();
    // The call whose answer is lost has the lock for as long as the disk takes.
    let epochs = Arc::new(FileFence::new(folder.path()).clock(Arc::new(Endless)));
    // The answer is lost: the future is dropped after its first step, wherever that got to.
    let mut lost = epochs.next(FenceKind::Epoch, "app", 0);
    std::future::poll_fn(|cx| std::task::Poll::Ready(lost.as_mut().poll(cx).is_pending())).await;
    drop(lost);
    let first = epochs.next(FenceKind::Epoch, "app", 0).await.unwrap();
    let second = epochs.next(FenceKind::Epoch, "app", 0).await.unwrap();
    assert!(first < second && second <= 3, "{first}, {second}");
}

#[tokio::test]
async fn another_process_that_holds_the_lock_is_waited_for_and_named() {
    let folder = TempFolder::new().unwrap();
    let clock = Arc::new(ManualClock::at(0));
    let epochs = FileFence::new(folder.path()).clock(clock.clone());
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 0).await, Ok(1));
    let lock = fs::File::open(folder.path().join("app.lock")).unwrap();
    lock.lock().unwrap();
    let mut asked = epochs.next(FenceKind::Epoch, "app", 0);
    let pending = |asked: &mut soldonce_lease::backend::Fut<'_, _>,
                   cx: &mut std::task::Context<'_>| {
        std::task::Poll::Ready(asked.as_mut().poll(cx).is_pending())
    };
    assert!(std::future::poll_fn(|cx| pending(&mut asked, cx)).await);
    clock.advance(Duration::from_secs(3));
    let error = asked.await.unwrap_err().to_string();
    assert!(error.contains("another process holds"), "{error}");
    drop(lock);
    assert_eq!(epochs.next(FenceKind::Epoch, "app", 0).await, Ok(2));
}

/// A pipe in place of the lock file: to open it takes until another opens it, as long as a disk that stalls.
#[tokio::test]
async fn a_disk_that_stalls_stops_nothing_else() {
    let folder = TempFolder::new().unwrap();
    let lock = folder.path().join("app.lock");
    let made = Command::new("mkfifo").arg(&lock).status().unwrap();
    assert!(made.success());
    let (to, others) = std::sync::mpsc::channel();
    let disk = std::thread::spawn(move || {
        let ran = others.recv_timeout(PATIENCE);
        fs::File::open(lock).unwrap();
        ran
    });
    let epochs = FileFence::new(folder.path());
    let mut asked = epochs.next(FenceKind::Epoch, "app", 0);
    std::future::poll_fn(|cx| std::task::Poll::Ready(asked.as_mut().poll(cx).is_pending())).await;
    to.send(()).ok();
    assert_eq!(asked.await, Ok(1));
    assert_eq!(disk.join().unwrap(), Ok(()));
}

/// How often the giver of epochs is killed.
const KILLS: usize = 12;

#[test]
fn a_killed_process_never_gives_a_number_again() {
    let folder = TempFolder::new().unwrap();
    let mut last = 0;
    for kill in 0..KILLS {
        let mut child = start_giver(&folder);
        let mut numbers = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        // Each life ends after another count of numbers, at any step it happens to be in.
        for _ in 0..(3 + 5 * kill) {
            line.clear();
            numbers.read_line(&mut line).unwrap();
            last = rises(last, &line);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it had written before it died was given too.
        let mut rest = String::new();
        numbers.read_to_string(&mut rest).unwrap();
        for line in rest
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            last = rises(last, line);
        }
    }
    assert!(last > 100, "{last}");
}

fn rises(last: u64, line: &str) -> u64 {
    // The test runner's own lines stand between.
    let Some(number) = line.strip_prefix("given ") else {
        return last;
    };
    let number = number.trim().parse().unwrap();
    assert!(number > last, "{number} was given after {last}");
    number
}

fn start_giver(folder: &TempFolder) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "epochs::giver", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", folder.path().display()).unwrap();
    child
}

/// The process that is killed: takes epochs for ever in the folder that it is told. Told nothing,
/// as in an ordinary run, it does nothing.
#[test]
fn giver() {
    let mut folder = String::new();
    if !std::io::stdin().is_terminal() {
        std::io::stdin().read_line(&mut folder).unwrap();
    }
    if folder.trim().is_empty() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread();
    let epochs = FileFence::new(folder.trim());
    let give = async {
        let mut out = std::io::stdout();
        loop {
            let epoch = epochs.next(FenceKind::Epoch, "app", 0).await.unwrap();
            // The parent is gone: so is the reason to go on.
            if writeln!(out, "given {epoch}").is_err() {
                return;
            }
        }
    };
    { runtime }.enable_all().build().unwrap().block_on(give);
}
