//! SIGKILL under load, again and again on one ledger. The kill follows a number of
//! acknowledgements, never a clock.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use super::cards::{Card, create_hall};
use super::check::Look;
use super::client::Outcome;
use super::draw::Draw;
use super::load::{Target, Worker};
use super::scratch::Scratch;
use super::server::{Log, Server, serving_with, verify};
use super::units::check_hall;
use super::{Run, Violation};

const CYCLES: usize = 30;
const WORKERS: usize = 8;
/// Acknowledgements before a kill: at least, and how many more at most.
const ACKNOWLEDGEMENTS: (usize, usize) = (20, 200);
/// A safety net: a load that gets nowhere fails instead of hanging.
const LOAD_WAIT: Duration = Duration::from_mins(1);

/// The clients and everything they know.
struct Clients {
    workers: Vec<Worker>,
    outcomes: BTreeMap<String, Outcome>,
    restarts: usize,
}

impl Clients {
    fn new(draw: &Draw) -> Self {
        Self {
            workers: (0..WORKERS)
                .map(|number| Worker::new(number, draw))
                .collect(),
            outcomes: BTreeMap::new(),
            restarts: 0,
        }
    }

    /// Loads the server and kills it when so many requests were acknowledged.
    fn load_and_kill(&mut self, server: Server, acknowledgements: usize) {
        let (reached, wait) = sync_channel(1);
        let target = Target::new(u64::try_from(acknowledgements).unwrap(), reached);
        let (target, restarts) = (&target, self.restarts);
        std::thread::scope(|scope| {
            for (number, worker) in self.workers.iter_mut().enumerate() {
                let client = server.client(&format!("r{restarts}-w{number}"));
                scope.spawn(move || worker.work(client, target));
            }
            let reached = wait.recv_timeout(LOAD_WAIT);
            server.kill();
            reached.expect("the load got nowhere");
        });
    }

    /// Compares everything that may have changed with the restarted server.
    fn check(&mut self, server: &Server) -> Vec<Violation> {
        self.restarts += 1;
        let mut client = server.client(&format!("r{}-check", self.restarts));
        let mut look = Look {
            client: &mut client,
            violations: Vec::new(),
        };
        for worker in &mut self.workers {
            look.violations.append(&mut worker.violations);
            for card in &mut worker.open {
                look.card(card);
            }
            worker.open.retain(|card| card.hold.is_some());
            let (over, open) = worker.open.drain(..).partition(Card::is_over);
            worker.open = open;
            worker.over.extend::<Vec<Card>>(over);
        }
        let violations = look.violations;
        self.take_outcomes(client.outcomes);
        violations
    }

    fn take_outcomes(&mut self, checked: Vec<(String, Outcome)>) {
        let loaded = self
            .workers
            .iter_mut()
            .flat_map(|worker| worker.outcomes.drain(..));
        self.outcomes.extend(loaded.chain(checked));
    }

    /// Everything once more, from the first hold on, and the hall as a whole.
    fn check_all(&mut self, server: &Server) -> Vec<Violation> {
        for worker in &mut self.workers {
            let over = std::mem::take(&mut worker.over);
            worker.open.extend(over);
        }
        let mut violations = self.check(server);
        let cards = self.cards();
        let mut client = server.client("end");
        violations.extend(check_hall(&mut client, &cards, &self.outcomes));
        violations
    }

    fn cards(&self) -> Vec<Card> {
        let cards = self
            .workers
            .iter()
            .flat_map(|worker| worker.open.iter().chain(&worker.over));
        cards.cloned().collect()
    }

    fn report(&self, cycles: usize) {
        let cards = self.cards();
        let acknowledged: usize = self.workers.iter().map(|worker| worker.acknowledged).sum();
        let unknown = self
            .outcomes
            .values()
            .filter(|outcome| **outcome == Outcome::Unknown)
            .count();
        let bookings = cards.iter().filter(|card| card.booking.is_some()).count();
        println!(
            "kill -9: {cycles} times, {acknowledged} acknowledged, {unknown} without an answer, \
             {} holds and {bookings} bookings all there",
            cards.len()
        );
    }
}

#[test]
fn all_that_was_acknowledged_is_there_after_every_kill() {
    let run = Run::new("kills");
    let scratch = Scratch::new(&run);
    let data = scratch.join("data");
    let mut draw = Draw::new(run.seed);
    let mut clients = Clients::new(&draw);
    let mut server = start(&data, 0);
    assert_eq!(
        server.client("setup").ask(&create_hall()).unwrap().status,
        201
    );
    let cycles = CYCLES * run.times;
    for cycle in 0..cycles {
        let (least, more) = ACKNOWLEDGEMENTS;
        clients.load_and_kill(server, least + draw.below(more));
        server = start(&data, cycle + 1);
        let violations = clients.check(&server);
        run.require_none(&format!("cycle {cycle}"), &violations, &scratch);
    }
    let violations = clients.check_all(&server);
    run.require_none("the end", &violations, &scratch);
    assert!(server.stop().success(), "the server did not end in order");
    verify(&data).unwrap_or_else(|said| {
        run.require_none("the end", &[Violation::new("I20", said)], &scratch);
    });
    clients.report(cycles);
}

/// In turns the program itself, and a server with a log so short that many kills meet its move into the
/// database.
fn start(data: &Path, cycle: usize) -> Server {
    let log = if cycle.is_multiple_of(2) {
        Log::Short
    } else {
        Log::Long
    };
    let started = Server::run(serving_with(data, log), data);
    started.unwrap_or_else(|not| panic!("no start: {} {}", not.status, not.log))
}
