//! A thousand waiters on one name, in one process and in ten: `lease.md` 11.8. What they cost the
//! server is counted by the server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use soldonce_lease::{BootTime, Builder, Clock, Doctor, Lease, Leases, SystemClock};
use soldonce_testkit::redis::Redis;
use soldonce_testkit::{PATIENCE, runtime};
use tokio::task::JoinSet;

use super::batches::scripts;
use super::site::until;
use crate::awake::Awake;

const WAITERS: usize = 1_000;
const PROCESSES: usize = 10;

/// The name that all wait for.
const NAME: &str = "q";

/// Set in a process that only waits: where Redis is, how many waiters.
const ROLE: &str = "SOLDONCE_LEASE_WAITERS";

/// A hint that was lost costs a poll, of 0.8 s at least. Among ten processes a machine that stalls costs as much.
const SLOW: Duration = Duration::from_millis(750);
const SLOW_MAX: usize = 2;
const SLOW_MAX_OF_TEN: usize = WAITERS / 50;

/// Who had a turn, in the order of the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    token: u64,
    process: usize,
    waiter: usize,
    at: BootTime,
}

fn builder(url: &str) -> Builder {
    let builder = Leases::redis(url).namespace("app").doctor(Doctor::Off);
    builder.call_timeout(PATIENCE)
}

async fn locks(url: &str) -> Leases {
    builder(url).connect().await.unwrap()
}

/// Holds the name while the others line up.
async fn hold(locks: &Leases) -> Lease {
    let ask = locks.lease(NAME).ttl(Duration::from_mins(1));
    ask.try_acquire().await.unwrap().unwrap()
}

/// `count` waiters in the order of their arrival; each gives the name back when `turn` has seen it.
async fn wait_in_line(
    locks: &Leases,
    count: usize,
    clock: &(impl Clock + Clone),
    turn: impl Fn(Turn) + Clone + Send + 'static,
) {
    let mut waiting = JoinSet::new();
    for waiter in 0..count {
        let (locks, clock, turn) = (locks.clone(), clock.clone(), turn.clone());
        waiting.spawn(async move {
            let ask = locks.lease(NAME).ttl(Duration::from_mins(1)).fair();
            let lease = ask.acquire().await.unwrap();
            let (process, at) = (0, clock.boot());
            let token = lease.token_for_logs().unwrap().number();
            turn(Turn {
                token,
                process,
                waiter,
                at,
            });
            lease.release().await.unwrap();
        });
    }
    waiting.join_all().await;
}

/// How many hand-overs took so long that the hint may have been lost.
fn slow(turns: &[Turn]) -> usize {
    let gaps = turns.windows(2).map(|pair| pair[1].at.since(pair[0].at));
    gaps.filter(|gap| *gap >= SLOW).count()
}

/// The place of each waiter of one process must be that of its arrival.
fn assert_in_order(turns: &[Turn]) {
    let mut last = BTreeMap::new();
    for turn in turns {
        let before = last.insert(turn.process, turn.waiter);
        assert!(before < Some(turn.waiter), "{turn:?} after {before:?}");
    }
}

#[tokio::test]
async fn a_thousand_waiters_in_one_process_are_served_in_order() {
    let (redis, awake) = (Redis::start().unwrap(), Awake::start());
    let clock = awake.clock();
    let locks = builder(&redis.url()).clock(Arc::new(clock.clone()));
    let locks = locks.connect().await.unwrap();
    let held = hold(&locks).await;
    let (told, turns) = channel();
    let before = scripts(&redis);
    let turn = move |turn| told.send(turn).unwrap();
    let waiting = wait_in_line(&locks, WAITERS, &clock, turn);
    let release = async { held.release().await.unwrap() };
    tokio::join!(waiting, release);
    let sent = usize::try_from(scripts(&redis) - before).unwrap();
    let turns: Vec<Turn> = turns.try_iter().collect();
    assert_eq!(turns.len(), WAITERS);
    assert!(turns.is_sorted(), "tokens rise");
    assert_in_order(&turns);
    assert!(slow(&turns) <= SLOW_MAX, "{} slow hand-overs", slow(&turns));
    // The release, the try of the next, and one for its hint.
    assert!(sent <= 3 * WAITERS + 50, "{sent} scripts");
}

/// Another process with waiters. Killed when it is dropped.
struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Process {
    /// Starts this test's program again, for this one test.
    fn start(url: &str, waiters: usize, test: &str) -> Self {
        let (_, module) = module_path!().split_once("::").unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        command.arg(std::env::current_exe().unwrap());
        command.args([&format!("{module}::{test}"), "--exact", "--nocapture"]);
        command.env(ROLE, format!("{url} {waiters}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (told, lines) = channel();
        std::thread::spawn(move || {
            let read = BufReader::new(stdout).lines().map_while(Result::ok);
            // No one listens any more when the test has ended.
            read.map_while(|line| told.send(line).ok()).for_each(drop);
        });
        Self {
            child,
            stdin,
            lines,
        }
    }

    fn line(&self, word: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Lets it wait, once it is connected.
    fn go(&mut self) {
        self.line("connected");
        writeln!(self.stdin, "go").unwrap();
    }

    fn turn(&self, process: usize) -> Turn {
        let line = self.line("turn");
        let mut numbers = line.split(' ').map(|word| word.parse::<u64>().unwrap());
        let mut next = || numbers.next().unwrap();
        Turn {
            token: next(),
            process,
            waiter: usize::try_from(next()).unwrap(),
            at: BootTime::from_duration(Duration::from_micros(next())),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, or is no longer needed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// In such a process: waits as it was told to, and is done.
#[expect(
    clippy::print_stdout,
    reason = "how it speaks to the test that started it"
)]
fn is_waiter() -> bool {
    let Some(role) = std::env::var_os(ROLE) else {
        return false;
    };
    let role = role.into_string().unwrap();
    let (url, waiters) = role.split_once(' ').unwrap();
    runtime().unwrap().block_on(async {
        let locks = locks(url).await;
        println!("connected");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        let turn = |turn: Turn| {
            let at = turn.at.since(BootTime::default()).as_micros();
            println!("turn {} {} {at}", turn.token, turn.waiter);
        };
        wait_in_line(&locks, waiters.parse().unwrap(), &SystemClock, turn).await;
    });
    true
}

/// How many of them stand in the queue of the server.
fn queued(redis: &Redis) -> usize {
    let key = redis.cli(&["KEYS", "sl:*:q:q"]).unwrap();
    let places = redis.cli(&["HLEN", &key]).unwrap();
    places.parse().unwrap_or_default()
}

async fn until_queued(redis: &Redis, count: usize) {
    until("they stand in line", async || {
        (queued(redis) == count).then_some(())
    })
    .await;
}

/// A test that starts its program again: there only the waiting is done.
fn with_processes(test: impl Future<Output = ()>) {
    if !is_waiter() {
        runtime().unwrap().block_on(test);
    }
}

/// How many turns one process had between each two turns of another that had waiters all the while, if any.
fn turns_of_one_between_two_of_another(turns: &[Turn]) -> Vec<usize> {
    let mut since: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut counts = Vec::new();
    // From the first to the last turn of each process it has waiters.
    let seen = |turns: &[Turn], process| turns.iter().any(|turn| turn.process == process);
    for (at, turn) in turns.iter().enumerate() {
        let (before, after) = (&turns[..at], &turns[at + 1..]);
        for other in (0..PROCESSES).filter(|other| *other != turn.process) {
            counts.extend(since.remove(&(turn.process, other)));
            if seen(before, other) && seen(after, other) {
                *since.entry((other, turn.process)).or_default() += 1;
            }
        }
    }
    counts
}

#[test]
fn a_thousand_waiters_in_ten_processes_take_turns() {
    with_processes(async {
        let redis = Redis::start().unwrap();
        let locks = locks(&redis.url()).await;
        let held = hold(&locks).await;
        let test = "a_thousand_waiters_in_ten_processes_take_turns";
        let start = |_| Process::start(&redis.url(), WAITERS / PROCESSES, test);
        let mut processes: Vec<Process> = (0..PROCESSES).map(start).collect();
        processes.iter_mut().for_each(Process::go);
        until_queued(&redis, PROCESSES).await;
        let before = scripts(&redis);
        held.release().await.unwrap();
        let mut turns = Vec::new();
        for (at, process) in processes.iter().enumerate() {
            turns.extend((0..WAITERS / PROCESSES).map(|_| process.turn(at)));
        }
        let sent = usize::try_from(scripts(&redis) - before).unwrap();
        turns.sort_unstable();
        assert_in_order(&turns);
        assert!(
            slow(&turns) <= SLOW_MAX_OF_TEN,
            "{} slow hand-overs",
            slow(&turns)
        );
        // The release, a try of the head of each process, and the first of the next head.
        assert!(sent <= WAITERS * (PROCESSES + 4), "{sent} scripts");
        // In turn; a process that is slow to line up again misses some, and that is rare.
        let counts = turns_of_one_between_two_of_another(&turns);
        let many = counts.iter().filter(|count| **count > 5).count();
        assert!(many * 20 <= counts.len(), "{many} of {}", counts.len());
    });
}

#[test]
fn a_killed_waiter_costs_three_seconds() {
    with_processes(async {
        let redis = Redis::start().unwrap();
        let locks = locks(&redis.url()).await;
        let held = hold(&locks).await;
        let test = "a_killed_waiter_costs_three_seconds";
        let start = |_| Process::start(&redis.url(), 1, test);
        let [mut first, mut second] = [0, 1].map(start);
        first.go();
        until_queued(&redis, 1).await;
        second.go();
        until_queued(&redis, 2).await;
        drop(first);
        let released = SystemClock.boot();
        held.release().await.unwrap();
        let took = second.turn(1).at.since(released);
        // Exactly three seconds are `conformance::waiting`'s; a death that goes unnoticed costs a minute.
        let limit = Duration::from_secs(20);
        assert!(took < limit, "{took:?} for a dead waiter");
    });
}

fn turn(process: usize, waiter: usize) -> Turn {
    Turn {
        token: 0,
        process,
        waiter,
        at: BootTime::default(),
    }
}

#[test]
#[should_panic(expected = "after Some(1)")]
fn a_waiter_that_was_overtaken_is_seen() {
    assert_in_order(&[turn(0, 0), turn(1, 0), turn(0, 1), turn(0, 1)]);
}

#[test]
fn a_process_that_is_served_too_often_is_seen() {
    let turns = [0, 1, 1, 1, 0, 1, 0, 1].map(|process| turn(process, 0));
    assert_eq!(turns_of_one_between_two_of_another(&turns), [3, 1, 1, 1]);
}
