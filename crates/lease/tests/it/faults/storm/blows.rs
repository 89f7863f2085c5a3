//! The faults of a storm, drawn from a seed, one after the other.

use std::time::Duration;

use crate::history::Recorder;
use soldonce_lease::{BootTime, Clock, SystemClock};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::player::Player;
use soldonce_testkit::redis::{Data, Redis, RedisCluster};
use soldonce_testkit::{PATIENCE, runtime, until};

use super::LULL;
use super::draw::Draw;
use crate::awake::Awake;
use crate::faults::rest;
use crate::faults::site::{Kind, Servers, Site};

/// Keys in the two slots of a cluster where the names of a storm are.
const HOMES: [&str; 2] = ["sl:{app.27}:f", "sl:{app.0c}:f"];

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
    /// Two of three nodes of a Redlock are killed at once and come back with nothing.
    KillMajority,
    /// Redis is emptied.
    Flush,
    /// To the server, every lease is over now.
    EndLeases,
    /// A replica takes over that does not have the last grants.
    FailOver,
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

/// What may happen to a primary with a replica.
const PAIR: &[Blow] = &[
    Blow::LoseReplies,
    Blow::Delay,
    Blow::Reset,
    Blow::Cut,
    Blow::PauseServer,
    Blow::FailOver,
    Blow::FailOver,
    Blow::FailOver,
    Blow::PausePlayer,
];

/// What may happen to a shard of a cluster; its nodes cannot be behind proxies.
const CLUSTER: &[Blow] = &[
    Blow::PauseServer,
    Blow::Flush,
    Blow::EndLeases,
    Blow::FailOver,
    Blow::FailOver,
    Blow::PausePlayer,
];

/// What shows a planted bug soonest.
const FLUSHES: &[Blow] = &[Blow::Flush];
const KILLS: &[Blow] = &[Blow::KillMajority];

/// What may happen to a Redlock, a node at a time. That a restarted node has forgotten is no loss: it
/// sits out.
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
    pub(super) proxies: &'a [FaultProxy],
    pub(super) players: &'a mut [Player],
    pub(super) recorder: &'a Recorder,
    /// Only what makes a server forget.
    pub(super) only_losses: bool,
}

impl Storm<'_> {
    /// Blow after blow for so long, without the time for which the machine stood still; all is well again in the end.
    /// What happened when.
    pub(super) fn rage(&mut self, seed: u64, time: Duration) -> Vec<String> {
        let (draw, begun, awake) = (Draw::of(seed), SystemClock.boot(), Awake::start());
        let end = awake.clock().boot().plus(time);
        let list = match self.site.kind {
            Kind::Redlock if self.only_losses => KILLS,
            _ if self.only_losses => FLUSHES,
            Kind::Redis => REDIS,
            Kind::Pair => PAIR,
            Kind::Cluster => CLUSTER,
            Kind::Redlock => REDLOCK,
            Kind::Postgres => POSTGRES,
        };
        let mut told = Vec::new();
        while awake.clock().boot() < end {
            let blow = list[draw.place(list.len())];
            told.push(told_at(begun, blow));
            self.strike(blow, &draw);
            wait(LULL);
        }
        told
    }

    /// The server that is hit: any node of a Redlock, else the one that decides.
    fn place(&self, draw: &Draw) -> usize {
        match (self.site.kind, &self.site.servers) {
            (Kind::Redlock, servers) => draw.place(servers.count()),
            (_, Servers::Cluster(cluster)) => {
                let home = HOMES[draw.place(HOMES.len())];
                cluster.primary_of(home).unwrap()
            }
            (_, _) => 0,
        }
    }

    fn strike(&mut self, blow: Blow, draw: &Draw) {
        let place = self.place(draw);
        match blow {
            Blow::LoseReplies => self.next(place, "", Fault::DropReply, draw),
            Blow::Double => self.next(place, "EVALSHA", Fault::Twice, draw),
            Blow::Delay => self.meanwhile(place, Fault::Delay(draw.ms(20, 400)), draw.ms(50, 300)),
            Blow::Reset => self.meanwhile(place, Fault::Reset, draw.ms(5, 100)),
            Blow::Cut => self.meanwhile(place, Fault::Cut, draw.ms(50, 600)),
            Blow::Silence => {
                let proxy = &self.proxies[place];
                for connection in 1..=proxy.connections() {
                    proxy.set_for(connection, Fault::HalfOpen);
                }
            }
            Blow::PauseServer => {
                self.site.servers.pause(place);
                wait(draw.ms(50, 900));
                self.site.servers.resume(place);
            }
            Blow::KillServer => self.kill_server(place),
            Blow::KillMajority => (0..2).for_each(|place| self.kill_server(place)),
            Blow::Flush | Blow::EndLeases => self.lose(blow, place),
            Blow::FailOver => self.fail_over(place, draw),
            Blow::PausePlayer => {
                let player = &mut self.players[draw.place(2)];
                player.pause().unwrap();
                wait(draw.ms(100, 1_500));
                player.resume().unwrap();
            }
        }
    }

    /// Up to four of the next requests.
    fn next(&self, place: usize, text: &str, fault: Fault, draw: &Draw) {
        for _ in 0..=draw.below(3) {
            self.proxies[place].next_with(text, fault);
        }
    }

    fn meanwhile(&self, place: usize, fault: Fault, span: Duration) {
        self.proxies[place].set(fault);
        wait(span);
        self.proxies[place].set(Fault::None);
    }

    fn kill_server(&mut self, place: usize) {
        match &mut self.site.servers {
            Servers::Redis(servers) if self.site.kind == Kind::Redlock => {
                servers[place].restart(Data::Lost).unwrap();
            }
            Servers::Redis(servers) => {
                let restart = || servers[place].restart(Data::Lost).unwrap();
                self.recorder.losing(restart);
            }
            Servers::Cluster(_) => {}
            Servers::Postgres(server) => {
                server.kill().unwrap();
                server.restart().unwrap();
            }
        }
    }

    fn lose(&self, blow: Blow, place: usize) {
        let over = "UPDATE soldonce_lease SET expires_at = clock_timestamp()";
        self.recorder.losing(|| match &self.site.servers {
            Servers::Postgres(server) => drop(server.query(over).unwrap()),
            servers if matches!(blow, Blow::Flush) => {
                drop(servers.redis()[place].cli(&["FLUSHALL"]).unwrap());
            }
            servers => {
                for key in self.site.left() {
                    let place = match servers {
                        Servers::Cluster(cluster) => cluster.primary_of(&key).unwrap(),
                        Servers::Redis(_) | Servers::Postgres(_) => place,
                    };
                    servers.redis()[place].cli(&["PEXPIRE", &key, "1"]).unwrap();
                }
                wait(Duration::from_millis(2));
            }
        });
    }

    fn fail_over(&mut self, place: usize, draw: &Draw) {
        let behind = draw.ms(20, 150);
        match &mut self.site.servers {
            Servers::Cluster(cluster) => {
                self.recorder.losing(|| take_over(cluster, place));
            }
            Servers::Redis(servers) => {
                let (old, new) = (&servers[0], &servers[1]);
                self.recorder.losing(|| {
                    obey(new, &["REPLICAOF", "127.0.0.1", "1"]);
                    wait(behind);
                    obey(new, &["REPLICAOF", "NO", "ONE"]);
                    self.proxies[0].retarget(new.address());
                });
                let port = new.address().port().to_string();
                obey(old, &["REPLICAOF", "127.0.0.1", &port]);
                servers.swap(0, 1);
            }
            Servers::Postgres(_) => {}
        }
    }
}

/// The replica of a shard takes over without asking, and the old primary learns of it.
fn take_over(cluster: &RedisCluster, primary: usize) {
    let nodes = cluster.nodes();
    let replica = (primary + nodes.len() / 2) % nodes.len();
    // It may still be on its way to being one.
    let taken = nodes[replica].cli(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    if taken.is_ok() {
        until("the old primary follows", PATIENCE, || {
            let role = nodes[primary].cli(&["ROLE"]);
            role.is_ok_and(|role| role.starts_with("slave"))
        })
        .unwrap();
    }
}

/// Asks until the server is not busy with loading.
fn obey(server: &Redis, command: &[&str]) {
    until("the server obeys", PATIENCE, || server.cli(command).is_ok()).unwrap();
}

fn told_at(begun: BootTime, blow: Blow) -> String {
    format!(
        "{} ms {blow:?}",
        SystemClock.boot().since(begun).as_millis()
    )
}

/// How long a blow lasts is part of the blow.
fn wait(span: Duration) {
    runtime().unwrap().block_on(rest(span));
}
