//! Servers that keep leases: locks on them, direct or through proxies, and a look at what they keep
//! that does not go through the library.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soldonce_lease::backend::redis::{RedisConfig, RedlockConfig};
use soldonce_lease::{Builder, Doctor, FileFence, Leases, PgConfig};
use soldonce_testkit::TempFolder;
use soldonce_testkit::chaos::FaultProxy;
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::{FullCoverage, Redis, RedisCluster, RedisPair};

use super::sources::{script, scripts};

/// Longest wait of these locks for one answer: long against an answer of a busy machine.
pub(super) const CALL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Redis,
    /// A primary and its replica, which takes over.
    Pair,
    Cluster,
    Redlock,
    Postgres,
}

pub(super) enum Servers {
    /// One, a primary and its replica, or the nodes of a Redlock.
    Redis(Vec<Redis>),
    Cluster(RedisCluster),
    Postgres(Postgres),
}

pub(super) struct Site {
    pub(super) kind: Kind,
    pub(super) servers: Servers,
    numbers: TempFolder,
}

impl Servers {
    /// All that are Redis.
    pub(super) fn redis(&self) -> &[Redis] {
        match self {
            Servers::Redis(servers) => servers,
            Servers::Cluster(cluster) => cluster.nodes(),
            Servers::Postgres(_) => &[],
        }
    }

    pub(super) fn count(&self) -> usize {
        self.redis().len().max(1)
    }

    /// Lets one stand still.
    pub(super) fn pause(&mut self, place: usize) {
        let paused = match self {
            Servers::Redis(servers) => servers[place].pause(),
            Servers::Cluster(cluster) => cluster.node(place).and_then(Redis::pause),
            Servers::Postgres(server) => server.pause(),
        };
        paused.unwrap();
    }

    /// Lets it go on.
    pub(super) fn resume(&mut self, place: usize) {
        let resumed = match self {
            Servers::Redis(servers) => servers[place].resume(),
            Servers::Cluster(cluster) => cluster.node(place).and_then(Redis::resume),
            Servers::Postgres(server) => server.resume(),
        };
        resumed.unwrap();
    }
}

impl Site {
    pub(super) async fn start(kind: Kind) -> Self {
        let servers = match kind {
            Kind::Redis => Servers::Redis(Redis::independent(1).unwrap()),
            Kind::Pair => {
                let RedisPair { primary, replica } = RedisPair::start().unwrap();
                Servers::Redis(vec![primary, replica])
            }
            Kind::Cluster => {
                Servers::Cluster(RedisCluster::start(FullCoverage::NotRequired).unwrap())
            }
            Kind::Redlock => Servers::Redis(Redis::independent(3).unwrap()),
            Kind::Postgres => Servers::Postgres(crate::postgres::server().await),
        };
        let numbers = TempFolder::new().unwrap();
        Self {
            kind,
            servers,
            numbers,
        }
    }

    /// A proxy in front of each server. Nodes of a cluster tell their clients of each other, so these
    /// would go around it.
    pub(super) fn proxies(&self) -> Vec<FaultProxy> {
        let addresses: Vec<_> = match &self.servers {
            Servers::Redis(servers) => servers.iter().map(Redis::address).collect(),
            Servers::Cluster(_) => Vec::new(),
            Servers::Postgres(server) => vec![server.address()],
        };
        let to = addresses
            .into_iter()
            .map(|address| FaultProxy::to(address).unwrap());
        to.collect()
    }

    /// Leases with anchored tokens, in one shard, through these proxies or, with none, directly.
    pub(super) fn builder(&self, through: &[FaultProxy]) -> Builder {
        builder(self.kind, &self.urls(through), self.numbers.path()).call_timeout(CALL)
    }

    /// Where epochs and tokens come from.
    pub(super) fn numbers(&self) -> &Path {
        self.numbers.path()
    }

    /// The PostgreSQL, with one connection that acquires.
    pub(super) fn config(&self, through: &[FaultProxy]) -> PgConfig {
        config(&self.urls(through)[0])
    }

    pub(super) fn urls(&self, through: &[FaultProxy]) -> Vec<String> {
        let direct: Vec<_> = match &self.servers {
            Servers::Postgres(server) => vec![(server.url(), server.address())],
            servers => {
                let servers = servers.redis().iter();
                servers
                    .map(|server| (server.url(), server.address()))
                    .collect()
            }
        };
        let url = |(at, (url, address)): (usize, (String, _))| match through.get(at) {
            Some(proxy) => proxy.url(&url, address),
            None => url,
        };
        direct.into_iter().enumerate().map(url).collect()
    }

    /// Names that have a holder, and queues that have a place taken.
    pub(super) fn left(&self) -> Vec<String> {
        const HELD: &str = "SELECT name FROM soldonce_lease WHERE owner IS NOT NULL AND expires_at > clock_timestamp()";
        let lines = match &self.servers {
            Servers::Postgres(server) => server.query(HELD).unwrap(),
            servers => {
                let patterns = ["sl:*:l:*", "sl:*:q:*"];
                let keys = servers.redis().iter().flat_map(|server| {
                    let keys = |pattern| server.cli(&["KEYS", pattern]).unwrap();
                    patterns.map(keys)
                });
                keys.collect::<Vec<_>>().join("\n")
            }
        };
        let lines = lines.lines().filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    }

    /// How many connections the servers have from locks, for any state of their other end.
    pub(super) fn connections(&self) -> usize {
        const OURS: &str =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'soldonce-lease'";
        if let Servers::Postgres(server) = &self.servers {
            return server.query(OURS).unwrap().parse().unwrap();
        }
        let of = |server: &Redis| {
            let list = server.cli(&["CLIENT", "LIST"]).unwrap();
            // One of them asks.
            let others = |line: &&str| !line.contains("cmd=client|list");
            list.lines().filter(others).count()
        };
        self.servers.redis().iter().map(of).sum()
    }

    /// How many scripts each server has run; PostgreSQL does not count them.
    pub(super) fn served(&self) -> Vec<u64> {
        let of = |server: &Redis| {
            let stats = server.cli(&["INFO", "commandstats"]).unwrap();
            let (_, rest) = stats.split_once("cmdstat_evalsha:calls=")?;
            rest.split(',').next()?.parse().ok()
        };
        let servers = self.servers.redis().iter();
        servers.map(|server| of(server).unwrap_or(0)).collect()
    }

    /// Tells the servers all scripts, so that each call is one request.
    pub(super) fn load_scripts(&self) {
        for server in self.servers.redis() {
            for file in scripts() {
                server.cli(&["SCRIPT", "LOAD", &script(&file)]).unwrap();
            }
        }
    }

    /// Lets the servers forget what they need not know: the next acquire needs every step there is.
    pub(super) fn forget(&self) {
        for server in self.servers.redis() {
            server.cli(&["SCRIPT", "FLUSH"]).unwrap();
            let records = server.cli(&["KEYS", "sl:*:f"]).unwrap();
            for record in records.lines().filter(|record| !record.is_empty()) {
                server.cli(&["DEL", record]).unwrap();
            }
        }
    }
}

/// Leases with anchored tokens. Nodes of a Redlock vote at once, however young.
pub(super) fn builder(kind: Kind, urls: &[String], numbers: &Path) -> Builder {
    let builder = match kind {
        Kind::Redis | Kind::Pair => Leases::redis(&*urls[0]).fence(FileFence::new(numbers)),
        Kind::Cluster => Leases::cluster(nodes(urls)).fence(FileFence::new(numbers)),
        Kind::Redlock => {
            let config = RedlockConfig::new(nodes(urls)).sit_out(Duration::ZERO);
            Leases::redlock(config).fence(FileFence::new(numbers))
        }
        Kind::Postgres => Leases::postgres(config(&urls[0])),
    };
    builder.namespace("app").doctor(Doctor::Off)
}

pub(super) fn nodes(urls: &[String]) -> Vec<RedisConfig> {
    urls.iter().map(|url| RedisConfig::from(&**url)).collect()
}

fn config(url: &str) -> PgConfig {
    PgConfig::url(url).unwrap().connections(1)
}
