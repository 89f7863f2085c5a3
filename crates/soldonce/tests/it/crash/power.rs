//! Power cuts: a real run is recorded with strace, and after every step of it the files are rebuilt
//! as a power cut might leave them. SIGKILL cannot show a missing sync, because the page cache
//! survives it; this does.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use soldonce_clock::{SystemClock, SystemEntropy};
use soldonce_core::{BookingId, Event, EventId, HoldId, Inventory};
use soldonce_engine::ledger::sqlite::verify::verify;
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::ledger::{Ledger, Observer};
use soldonce_engine::reply::{self, StoredReply};

use super::cards::{Card, EVENT, Life, Wanted, create_hall, lasting, seats};
use super::check::agrees;
use super::draw::Draw;
use super::injected::endless;
use super::load::Worker;
use super::scratch::{Scratch, copy_folder};
use super::server::{Log, Server, command_line};
use super::trace::{Disk, Happened, Rest, parse};
use super::{Run, Violation, in_parallel};

/// Requests on the ledger before the record begins, and in it.
const REQUESTS: (usize, usize) = (6, 16);
const FILES: [&str; 3] = ["ledger.sqlite", "ledger.sqlite-wal", "high-water"];
const RESTS: [Rest; 5] = [
    Rest::Nothing,
    Rest::Everything,
    Rest::Some,
    Rest::Torn,
    Rest::Torn,
];

/// A recorded run.
struct Recording {
    before: PathBuf,
    happened: Vec<Happened>,
    /// What the client knew after each answer, before the first one too.
    known: Vec<Vec<Card>>,
}

impl Recording {
    fn make(run: &Run, scratch: &Scratch, log: Log) -> Self {
        let (data, before) = (scratch.join("data"), scratch.join("before"));
        let server = Server::start(&data).unwrap();
        let mut client = server.client("before");
        assert_eq!(client.ask(&create_hall()).unwrap().status, 201);
        let mut worker = Worker::timeless(0, &Draw::new(run.seed));
        let (target, _wait) = endless();
        assert!(worker.requests(&mut client, REQUESTS.0, &target).is_none());
        drop(client);
        assert!(server.stop().success());
        copy_folder(&data, &before);

        let trace = scratch.join("trace");
        let server = Server::run(recorded(&data, &trace, log), &data).unwrap();
        let mut client = server.client("record");
        let mut known = vec![worker.open.clone()];
        for _ in 0..REQUESTS.1 {
            assert!(worker.requests(&mut client, 1, &target).is_none());
            known.push(worker.open.clone());
        }
        drop(client);
        assert!(server.stop().success());
        let happened = parse(&std::fs::read_to_string(trace).unwrap(), &FILES);
        let answers = happened
            .iter()
            .filter(|step| matches!(step, Happened::Answered))
            .count();
        assert_eq!(
            answers, REQUESTS.1,
            "the record has other answers than the client"
        );
        Self {
            before,
            happened,
            known,
        }
    }

    /// Cuts the power after each step, in each way.
    fn cut_everywhere(&self, run: &Run, scratch: &Scratch) {
        let steps = self.happened.len();
        let cuts = steps * RESTS.len() * run.times;
        in_parallel(cuts, |cut| {
            let mut draw = Draw::new(run.seed).part(u64::try_from(cut).unwrap());
            let (after, rest) = (cut / RESTS.len() % steps + 1, RESTS[cut % RESTS.len()]);
            let folder = scratch.join(&format!("cut-{cut}"));
            let violations = self.cut(after, rest, &mut draw, &folder);
            run.require_none(&format!("cut {cut}"), &violations, scratch);
        });
        println!("power cuts: {cuts} images of a run with {steps} steps; nothing lost");
    }

    /// Cuts the power after `steps` steps, in one way, and looks at what is left.
    fn cut(&self, steps: usize, rest: Rest, draw: &mut Draw, folder: &Path) -> Vec<Violation> {
        let mut disk = Disk::of(&self.before, &FILES);
        let mut answers = 0;
        for step in self.happened.iter().take(steps) {
            answers += usize::from(matches!(step, Happened::Answered));
            disk.take(step);
        }
        disk.cut_power(rest, draw, folder);
        let known = &self.known[answers];
        let next = self.known.get(answers + 1).unwrap_or(known);
        let mut violations = look(folder, known, next);
        match verify(folder, &mut |_| {}) {
            Ok(report) if report.is_clean() => {}
            Ok(report) => violations.push(Violation::new("I20", format!("{:?}", report.findings))),
            Err(error) => violations.push(Violation::new("I20", error.to_string())),
        }
        for violation in &mut violations {
            write!(
                violation.what,
                " after step {steps} of {}, {rest:?}",
                self.happened.len()
            )
            .unwrap();
        }
        if violations.is_empty() {
            std::fs::remove_dir_all(folder).unwrap();
        }
        violations
    }
}

fn recorded(data: &Path, trace: &Path, log: Log) -> Command {
    let mut command = Command::new(soldonce_testkit::program("strace").unwrap());
    command
        .args(["-D", "-f", "-q", "-xx", "-y", "-s", "8192", "-o"])
        .arg(trace);
    command.args([
        "-e",
        "trace=pwrite64,fsync,fdatasync,ftruncate,write,writev,sendto,sendmsg",
    ]);
    command.args(command_line(data, log));
    command
}

/// The event of a ledger as it was opened.
#[derive(Default)]
struct Opened(Mutex<Option<Arc<Event>>>);

impl Observer for Opened {
    fn opened(&self, inventory: &Inventory) {
        let event = inventory.events().next().cloned();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = event;
    }
}

/// What was acknowledged is there, and besides at most the request that was under way.
fn look(folder: &Path, known: &[Card], next: &[Card]) -> Vec<Violation> {
    let opened = Arc::new(Opened::default());
    let observer = Arc::clone(&opened);
    let options = SqliteOptions::new(folder);
    let ledger = match SqliteLedger::open(&options, Arc::new(SystemClock), &SystemEntropy, observer)
    {
        Ok(ledger) => ledger,
        Err(error) => return vec![Violation::new("I14", format!("no-restart {error}"))],
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let event = opened
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(event) = event else {
            return vec![Violation::new("I14", "event-lost")];
        };
        let mut violations = Vec::new();
        for card in next {
            let before = known.iter().find(|known| known.holder == card.holder);
            violations.extend(look_at(&ledger, &event, (before, card)).await);
        }
        let history = ledger
            .history(EventId::parse(EVENT).unwrap())
            .await
            .unwrap();
        let count = history.holds.len();
        if count != known.len() && count != next.len() {
            violations.push(Violation::new(
                "I15",
                format!("{count} holds, {} known", known.len()),
            ));
        }
        ledger.close().await;
        violations
    })
}

/// One card: as it was acknowledged, or as the next answer was going to say.
async fn look_at(
    ledger: &SqliteLedger,
    event: &Event,
    (before, after): (Option<&Card>, &Card),
) -> Option<Violation> {
    let id: HoldId = after.id()?.parse().ok()?;
    let hold = ledger.hold(id).await.ok()?;
    let hold = hold.map(|hold| parsed(&reply::hold_now(event, &hold, ledger.now())));
    let is_hold = |card: &Card| match (&card.hold, &hold) {
        (Some(known), Some(found)) => agrees(known, found),
        (None, found) => found.is_none(),
        (Some(_), None) => false,
    };
    let booking = match after
        .booking_id()
        .and_then(|id| id.parse::<BookingId>().ok())
    {
        Some(id) => ledger
            .booking(id)
            .await
            .ok()?
            .map(|found| parsed(&reply::booking(event, &found))),
        None => None,
    };
    let is_there = |card: &Card| is_hold(card) && card.booking == booking;
    let is_new = before.is_none() && hold.is_none() && booking.is_none();
    if is_new || before.is_some_and(is_there) || is_there(after) {
        return None;
    }
    let known = before.map(|card| (&card.hold, &card.booking));
    let what = format!("lost-in-a-power-cut known={known:?} found={hold:?} {booking:?}");
    Some(Violation::new("I14", what))
}

/// The answer of a stored reply, as a client would keep it.
fn parsed(reply: &StoredReply) -> Value {
    let mut bytes = reply.body.to_vec();
    bytes.push(b'}');
    lasting(serde_json::from_slice(&bytes).unwrap())
}

#[test]
fn no_power_cut_takes_what_was_acknowledged() {
    cut_everywhere(&Run::new("power"), Log::Long);
}

fn cut_everywhere(run: &Run, log: Log) -> Recording {
    let scratch = Scratch::new(run);
    let recording = Recording::make(run, &scratch, log);
    recording.cut_everywhere(run, &scratch);
    recording
}

/// A server was killed between the write of a commit and its sync. The next one reads the commit, and answers the
/// repeated request from it.
#[test]
fn what_a_killed_server_left_unsynced_is_durable_before_it_is_answered() {
    let run = Run::new("power-unsynced");
    let scratch = Scratch::new(&run);
    let (data, before) = (scratch.join("data"), scratch.join("before"));
    let server = Server::start(&data).unwrap();
    let made = server.client("before").ask(&create_hall());
    assert_eq!(made.unwrap().status, 201);
    assert!(server.stop().success());
    copy_folder(&data, &before);

    let mut card = Card::new(Wanted {
        holder: "ann".to_owned(),
        life: Life::Long,
        wish: ("units", json!([{"seat": seats()[0]}])),
        key: Some("cart".to_owned()),
    });
    let server = Server::start(&data).unwrap();
    card.held(&server.client("killed").ask(&card.create.ask).unwrap());
    server.kill();
    // Of that commit nothing is durable, and the mark behind it was not written.
    let unsynced = Happened::Written {
        file: FILES[1].to_owned(),
        at: 0,
        bytes: std::fs::read(data.join(FILES[1])).unwrap(),
    };
    std::fs::copy(before.join(FILES[2]), data.join(FILES[2])).unwrap();

    let trace = scratch.join("trace");
    let server = Server::run(recorded(&data, &trace, Log::Long), &data).unwrap();
    let again = server.client("again").ask(&card.create.ask).unwrap();
    assert!(again.replayed, "{}", again.shown());
    assert!(server.stop().success());
    let happened = parse(&std::fs::read_to_string(trace).unwrap(), &FILES);
    let recording = Recording {
        before,
        happened: std::iter::once(unsynced).chain(happened).collect(),
        known: vec![Vec::new(), vec![card]],
    };
    recording.cut_everywhere(&run, &scratch);
}

#[test]
fn no_power_cut_takes_it_while_the_log_is_moved() {
    let recording = cut_everywhere(&Run::new("power-moving"), Log::Short);
    // Teeth: the database itself was synced between answers, more than once.
    let is_answer = |step: &Happened| matches!(step, Happened::Answered);
    let last = recording.happened.iter().rposition(is_answer).unwrap();
    let is_move =
        |step: &&Happened| matches!(step, Happened::Synced { file, .. } if file == "ledger.sqlite");
    let moves = recording.happened[..last].iter().filter(is_move).count();
    assert!(moves >= 3, "the log was moved {moves} times under load");
}
