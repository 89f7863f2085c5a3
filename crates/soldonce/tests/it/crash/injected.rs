//! The Nth write or sync fails, or the process dies at it: for many N, on one scripted scenario, so
//! that every step of a commit is hit. strace counts per thread; the paths it looks at are written by
//! the ledger's thread alone, but for a start that fails and is refused.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

use super::cards::{Card, EVENT, create_hall, unit_names};
use super::check::Look;
use super::client::{Ask, Client, HttpAnswer};
use super::draw::Draw;
use super::load::{Ended, Target, Worker};
use super::scratch::{Scratch, copy_folder};
use super::server::{Log, Server, command_line, verify};
use super::units::check_hall;
use super::{Run, Violation, in_parallel};

/// Requests of the scenario.
const REQUESTS: usize = 12;
/// Requests before it, on a disk that works.
const REQUESTS_BEFORE: usize = 6;

/// What happens at the Nth call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails, and the process goes on.
    Error(&'static str),
    /// The process dies.
    Kill,
}

/// One fault at one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Injection {
    pub(crate) call: &'static str,
    pub(crate) fault: Fault,
    /// At which call of the thread, from 1.
    pub(crate) nth: usize,
    pub(crate) log: Log,
}

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// The scenario had fewer calls.
    Nothing,
    /// The server did not start.
    AtStart,
    /// While it served.
    Serving,
    /// While it ended.
    Ending,
}

/// The state before each run: a hall with some holds, closed in order.
pub(crate) struct Before<'a> {
    scratch: &'a Scratch,
    worker: Worker,
}

impl<'a> Before<'a> {
    pub(crate) fn make(run: &Run, scratch: &'a Scratch) -> Self {
        let data = scratch.join("before");
        let server = Server::start(&data).unwrap();
        let mut client = server.client("before");
        assert_eq!(client.ask(&create_hall()).unwrap().status, 201);
        let mut worker = Worker::timeless(0, &Draw::new(run.seed));
        let (target, _wait) = endless();
        assert!(
            worker
                .requests(&mut client, REQUESTS_BEFORE, &target)
                .is_none()
        );
        drop(client);
        assert!(server.stop().success());
        Self { scratch, worker }
    }

    /// Runs the scenario on a copy with one fault in it.
    pub(crate) fn run(&self, injection: Injection) -> (Met, Vec<Violation>) {
        let Injection { call, nth, .. } = injection;
        let kind = if injection.fault == Fault::Kill {
            "kill"
        } else {
            "error"
        };
        let log = injection.log;
        let data = self.scratch.join(&format!("{call}-{kind}-{nth}-{log:?}"));
        copy_folder(&self.scratch.join("before"), &data);
        let mut worker = self.worker.clone();
        let (mut met, mut violations) = suffer(&data, injection, &mut worker);
        let trace = std::fs::read_to_string(trace_of(&data)).unwrap();
        violations.extend(tried_again(&trace, injection));
        if !trace.contains("(INJECTED)") && !trace.contains("killed by SIGKILL") {
            met = Met::Nothing;
        }
        violations.extend(recover(&data, worker));
        if violations.is_empty() {
            std::fs::remove_dir_all(&data).unwrap();
        }
        (met, violations)
    }
}

/// A disk that failed once is not asked again: the answer of a second sync proves nothing. The
/// thread that moves the log and the writer each ask for themselves: their files are not the same.
fn tried_again(trace: &str, injection: Injection) -> Option<Violation> {
    let (before, after) = trace.split_once("(INJECTED)")?;
    let thread = before.lines().next_back()?.split(' ').next()?;
    let again = after.lines().find(|line| {
        line.starts_with(&format!("{thread} ")) && line.contains(&format!(" {}(", injection.call))
    })?;
    Some(Violation::new(
        "I27",
        format!("tried-again {again} {injection:?}"),
    ))
}

pub(crate) fn endless() -> (Target, std::sync::mpsc::Receiver<()>) {
    let (reached, wait) = sync_channel(1);
    (Target::new(u64::MAX, reached), wait)
}

fn trace_of(data: &Path) -> std::path::PathBuf {
    data.with_extension("trace")
}

/// strace around the server, as its child, so that the handle stays the server's.
fn strace(data: &Path, injection: Injection) -> Command {
    let Injection { call, nth, .. } = injection;
    let inject = match injection.fault {
        Fault::Error(error) => format!("{call}:error={error}:when={nth}"),
        Fault::Kill => format!("{call}:signal=SIGKILL:when={nth}"),
    };
    traced(data, injection.log, call, &inject)
}

/// A server none of whose writes succeeds from the Nth on.
pub(crate) fn strace_from(data: &Path, error: &str, nth: usize) -> Command {
    traced(
        data,
        Log::Long,
        "pwrite64",
        &format!("pwrite64:error={error}:when={nth}+"),
    )
}

fn traced(data: &Path, log: Log, call: &str, inject: &str) -> Command {
    let mut command = Command::new(soldonce_testkit::program("strace").unwrap());
    command.args(["-D", "-f", "-q", "-o"]).arg(trace_of(data));
    command.args([
        "-e",
        &format!("trace={call}"),
        "-e",
        &format!("inject={inject}"),
    ]);
    for file in ["ledger.sqlite", "ledger.sqlite-wal"] {
        command.arg("-P").arg(data.join(file));
    }
    command.args(command_line(data, log));
    command
}

/// Serves the scenario until the fault, and on.
fn suffer(data: &Path, injection: Injection, worker: &mut Worker) -> (Met, Vec<Violation>) {
    let Ok(mut server) = Server::run(strace(data, injection), data) else {
        return (Met::AtStart, Vec::new());
    };
    let mut client = server.client("under");
    let (target, _wait) = endless();
    match worker.requests(&mut client, REQUESTS, &target) {
        None => {
            drop(client);
            let ended = server.stop();
            let orderly = ended.success() || injection.fault == Fault::Kill;
            let what = || Violation::new("L8", format!("bad-end {ended} {injection:?}"));
            (Met::Ending, if orderly { vec![] } else { vec![what()] })
        }
        Some(Ended::Silence) => {
            server.end();
            let expected = injection.fault == Fault::Kill;
            let what = || Violation::new("I27", format!("no-answer {injection:?}"));
            (Met::Serving, if expected { vec![] } else { vec![what()] })
        }
        Some(Ended::Error(heard)) => {
            let violations = read_only(&mut client, &heard, worker);
            drop(client);
            server.stop();
            (Met::Serving, violations)
        }
    }
}

/// After a failed write or sync: it says so, takes nothing, and shows what was acknowledged.
pub(crate) fn read_only(
    client: &mut Client,
    heard: &HttpAnswer,
    worker: &mut Worker,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut require = |is_right: bool, what: &str, heard: &HttpAnswer| {
        if !is_right {
            violations.push(Violation::new("I27", format!("{what} {}", heard.shown())));
        }
    };
    let refuses = |heard: &HttpAnswer, codes: &[&str]| {
        heard.status == 503 && codes.contains(&&*heard.code()) && heard.retry_after.is_some()
    };
    // It may have failed behind the answer of the request before.
    let codes = ["outcome_unknown", "read_only"];
    require(refuses(heard, &codes), "unclear-failure", heard);
    let mut another = Worker::timeless(99, &Draw::new(1));
    let (target, _wait) = endless();
    match another.requests(client, 1, &target) {
        Some(Ended::Error(heard)) => {
            require(refuses(&heard, &["read_only"]), "unclear-refusal", &heard);
        }
        // Refused by the rules, which needs no disk.
        None if another.acknowledged == 0 => {}
        other => violations.push(Violation::new(
            "I27",
            format!("taken-after-failure {other:?}"),
        )),
    }
    worker.outcomes.append(&mut another.outcomes);
    let ready = client.ask(&Ask::get("/readyz".to_owned())).unwrap();
    if ready.status != 503 {
        violations.push(Violation::new(
            "I27",
            format!("ready-after-failure {}", ready.shown()),
        ));
    }
    // Reads go on, and memory that ran ahead of the file does not show.
    let mut look = Look { client, violations };
    for card in &worker.open {
        look.as_acknowledged(card);
    }
    let mut violations = look.violations;
    let shown = client
        .ask(&Ask::get(format!("/v1/events/{EVENT}/seats")))
        .unwrap()
        .json();
    let shown: Vec<&str> = shown["held"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|seat| seat.as_str())
        .collect();
    let live = worker.open.iter().filter(|card| card.state() == "active");
    let held = live.filter_map(|card| card.hold.as_ref());
    let mut held: Vec<String> = held.flat_map(|hold| unit_names(hold, "units")).collect();
    held.retain(|unit| !unit.starts_with("floor"));
    if shown.len() != held.len() || held.iter().any(|unit| !shown.contains(&unit.as_str())) {
        let what = format!("memory-ahead shown={shown:?} acknowledged={held:?}");
        violations.push(Violation::new("I27", what));
    }
    violations
}

/// Starts again on a disk that works, and checks everything.
pub(crate) fn recover(data: &Path, mut worker: Worker) -> Vec<Violation> {
    let server = match Server::start(data) {
        Ok(server) => server,
        Err(not) => return vec![Violation::new("I14", format!("no-restart {}", not.log))],
    };
    let mut client = server.client("after");
    let mut look = Look {
        client: &mut client,
        violations: Vec::new(),
    };
    for card in &mut worker.open {
        look.card(card);
    }
    let mut violations = look.violations;
    violations.append(&mut worker.violations);
    let cards: Vec<Card> = worker
        .open
        .iter()
        .filter(|card| card.hold.is_some())
        .cloned()
        .collect();
    let asked = worker.outcomes.drain(..).chain(client.outcomes.drain(..));
    let outcomes = asked.collect();
    violations.extend(check_hall(&mut client, &cards, &outcomes));
    drop(client);
    if !server.stop().success() {
        violations.push(Violation::new("L8", "bad-end after the restart"));
    }
    violations.extend(verify(data).err().map(|said| Violation::new("I20", said)));
    violations
}

/// Which calls are hit: every one of the first, then every `stride`th.
fn plan(run: &Run) -> Vec<Injection> {
    let stride = 12_usize.div_ceil(run.times);
    let writes = (1..=14).chain((15..240).step_by(stride));
    let syncs = 1..=18;
    let mut plan = Vec::new();
    for fault in [Fault::Error("EIO"), Fault::Kill] {
        let log = Log::Long;
        let writes = writes.clone().map(|nth| ("pwrite64", nth));
        let syncs = syncs.clone().map(|nth| ("fsync", nth));
        let all = writes.chain(syncs);
        plan.extend(all.map(|(call, nth)| Injection {
            call,
            fault,
            nth,
            log,
        }));
        // The thread that moves the log, in the middle of the load.
        let writes = (1..=30).step_by(stride.min(3)).map(|nth| ("pwrite64", nth));
        let syncs = (1..=9).map(|nth| ("fsync", nth));
        plan.extend(writes.chain(syncs).map(|(call, nth)| Injection {
            call,
            fault,
            nth,
            log: Log::Short,
        }));
    }
    plan
}

#[test]
fn a_failed_write_or_sync_is_never_acknowledged_and_ends_the_writing() {
    let run = Run::new("injected");
    let scratch = Scratch::new(&run);
    let before = Before::make(&run, &scratch);
    let plan = plan(&run);
    let met = Mutex::new(Vec::new());
    in_parallel(plan.len(), |at| {
        let (how, violations) = before.run(plan[at]);
        run.require_none(&format!("{:?}", plan[at]), &violations, &scratch);
        met.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((plan[at], how));
    });
    let met = met.into_inner().unwrap();
    let count = |how: Met| met.iter().filter(|(_, met)| *met == how).count();
    println!(
        "injected: {} runs; {} failed or died while serving, {} while ending, {} at the start, {} \
         had no such call; nothing lost",
        met.len(),
        count(Met::Serving),
        count(Met::Ending),
        count(Met::AtStart),
        count(Met::Nothing),
    );
    // Teeth: each kind of fault was met by the writer in the middle of its work.
    for (call, fault) in [
        ("pwrite64", "EIO"),
        ("pwrite64", "kill"),
        ("fsync", "EIO"),
        ("fsync", "kill"),
    ] {
        let is_kind = |injection: &Injection| {
            injection.call == call && (injection.fault == Fault::Kill) == (fault == "kill")
        };
        let served = met
            .iter()
            .filter(|(met, how)| is_kind(met) && *how == Met::Serving)
            .count();
        assert!(
            served >= 8,
            "{call} {fault}: only {served} while serving: {met:?}"
        );
    }
}
