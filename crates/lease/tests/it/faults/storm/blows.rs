//! The faults of a storm, drawn from a seed, one after the other.

use std::time::Duration;

use soldonce_lease::history::Recorder;
use soldonce_lease::{BootTime, Clock, SystemClock};
use soldonce_testkit::chaos::{Fault, Proxy};
use soldonce_testkit::player::Player;
use soldonce_testkit::redis::Data;

use super::LULL;
use super::client::runtime;
use super::draw::Draw;
use crate::faults::rest;
use crate::faults::site::{Servers, Site};

/// What can happen.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// Replies are lost, and their connections close.
    LoseReplies,
    /// Requests run twice.
    Double,
    /// All replies are late for a while.
    Delay,
    /// All connections are reset, and new ones too for a while.
    Reset,
    /// All connections fall silent for good; new ones work.
    Silence,
    /// Nothing passes for a while.
    Cut,
    /// A server stands still for a while.
    PauseServer,
    /// A server is killed and comes back; Redis with nothing.
    KillServer,
    /// Redis is emptied.
    Flush,
    /// To the server, every lease is over now.
    EndLeases,
    /// A process of clients stands still, for about as long as a lease lives.
    PausePlayer,
}

/// What may happen to one Redis, whose losses are losses.
const REDIS: &[Blow] = &[
    Blow::LoseReplies,
    Blow::Double,
    Blow::Delay,
    Blow::Reset,
    Blow::Silence,
    Blow::Cut,
    Blow::PauseServer,
    Blow::KillServer,
    Blow::Flush,
    Blow::Flush,
    Blow::EndLeases,
    Blow::PausePlayer,
];

/// What shows a planted bug soonest.
const LOSSES: &[Blow] = &[Blow::Flush];

/// What may happen to a node of a Redlock: whatever happens to one at a time is no loss.
const REDLOCK: &[Blow] = &[
    Blow::LoseReplies,
    Blow::Double,
    Blow::Delay,
    Blow::Reset,
    Blow::Silence,
    Blow::Cut,
    Blow::PauseServer,
    Blow::KillServer,
    Blow::PausePlayer,
];

/// What may happen to a PostgreSQL, which loses nothing when it is killed.
const POSTGRES: &[Blow] = &[
    Blow::LoseReplies,
    Blow::Delay,
    Blow::Reset,
    Blow::Silence,
    Blow::Cut,
    Blow::PauseServer,
    Blow::KillServer,
    Blow::EndLeases,
    Blow::PausePlayer,
];

/// Everything that can be hurt, and who writes down what is lost by it.
pub(super) struct Storm<'a> {
    pub(super) site: &'a mut Site,
    pub(super) proxies: &'a [Proxy],
    pub(super) players: &'a mut [Player],
    pub(super) recorder: &'a Recorder,
    /// Only what makes Redis forget.
    pub(super) only_losses: bool,
}

impl Storm<'_> {
    /// Blow after blow for so long; all is well again in the end. What happened when.
    pub(super) fn rage(&mut self, seed: u64, time: Duration) -> Vec<String> {
        let (draw, begun) = (Draw::of(seed), SystemClock.boot());
        let list = match &self.site.servers {
            _ if self.only_losses => LOSSES,
            Servers::Redis(servers) if servers.len() == 1 => REDIS,
            Servers::Redis(_) => REDLOCK,
            Servers::Postgres(_) => POSTGRES,
        };
        let mut told = Vec::new();
        while SystemClock.boot() < begun.plus(time) {
            let blow = list[draw.place(list.len())];
            told.push(told_at(begun, blow));
            self.strike(blow, &draw);
            wait(LULL);
        }
        told
    }

    fn strike(&mut self, blow: Blow, draw: &Draw) {
        let place = draw.place(self.proxies.len());
        let proxy = &self.proxies[place];
        match blow {
            Blow::LoseReplies => (0..=draw.below(3)).for_each(|_| proxy.next(Fault::DropReply)),
            Blow::Double => (0..=draw.below(3)).for_each(|_| {
                proxy.next_with("EVALSHA", Fault::Twice);
            }),
            Blow::Delay => self.meanwhile(place, Fault::Delay(draw.ms(20, 400)), draw.ms(50, 300)),
            Blow::Reset => self.meanwhile(place, Fault::Reset, draw.ms(5, 100)),
            Blow::Cut => self.meanwhile(place, Fault::Cut, draw.ms(50, 600)),
            Blow::Silence => {
                for connection in 1..=proxy.connections() {
                    proxy.set_for(connection, Fault::HalfOpen);
                }
            }
            Blow::PauseServer => self.pause_server(place, draw.ms(50, 900)),
            Blow::KillServer => self.kill_server(place),
            Blow::Flush | Blow::EndLeases => self.lose(blow),
            Blow::PausePlayer => {
                let player = &mut self.players[draw.place(2)];
                player.pause().unwrap();
                wait(draw.ms(100, 1_500));
                player.resume().unwrap();
            }
        }
    }

    fn meanwhile(&self, place: usize, fault: Fault, span: Duration) {
        self.proxies[place].set(fault);
        wait(span);
        self.proxies[place].set(Fault::None);
    }

    fn pause_server(&mut self, place: usize, span: Duration) {
        match &mut self.site.servers {
            Servers::Redis(servers) => {
                servers[place].pause().unwrap();
                wait(span);
                servers[place].resume().unwrap();
            }
            Servers::Postgres(server) => {
                server.pause().unwrap();
                wait(span);
                server.resume().unwrap();
            }
        }
    }

    fn kill_server(&mut self, place: usize) {
        match &mut self.site.servers {
            Servers::Redis(servers) if servers.len() > 1 => {
                servers[place].restart(Data::Lost).unwrap();
            }
            Servers::Redis(servers) => {
                self.recorder
                    .losing(|| servers[place].restart(Data::Lost).unwrap());
            }
            Servers::Postgres(server) => {
                server.kill().unwrap();
                server.restart().unwrap();
            }
        }
    }

    fn lose(&self, blow: Blow) {
        self.recorder.losing(|| match &self.site.servers {
            Servers::Redis(servers) if matches!(blow, Blow::Flush) => {
                drop(servers[0].cli(&["FLUSHALL"]).unwrap());
            }
            Servers::Redis(servers) => {
                for key in self.site.left() {
                    servers[0].cli(&["PEXPIRE", &key, "1"]).unwrap();
                }
                wait(Duration::from_millis(2));
            }
            Servers::Postgres(server) => {
                let over = "UPDATE soldonce_lease SET expires_at = clock_timestamp()";
                drop(server.query(over).unwrap());
            }
        });
    }
}

fn told_at(begun: BootTime, blow: Blow) -> String {
    format!(
        "{} ms {blow:?}",
        SystemClock.boot().since(begun).as_millis()
    )
}

/// How long a blow lasts is part of the blow.
fn wait(span: Duration) {
    runtime().block_on(rest(span));
}
