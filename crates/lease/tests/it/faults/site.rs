//! Servers that keep leases: locks on them, direct or through proxies, and a look at what they keep
//! that does not go through the library.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soldonce_lease::backend::redis::{RedisConfig, RedlockConfig};
use soldonce_lease::{Builder, Doctor, FileEpochs, FileTokens, Locks, PgConfig};
use soldonce_testkit::chaos::Proxy;
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::Redis;

use crate::folder::TempFolder;

/// Longest wait of these locks for one answer: long against an answer of a busy machine.
pub(super) const CALL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Redis,
    Redlock,
    Postgres,
}

pub(super) enum Servers {
    /// One, or the nodes of a Redlock.
    Redis(Vec<Redis>),
    Postgres(Postgres),
}

pub(super) struct Site {
    kind: Kind,
    pub(super) servers: Servers,
    numbers: TempFolder,
}

impl Site {
    pub(super) async fn start(kind: Kind) -> Self {
        let servers = match kind {
            Kind::Redis => Servers::Redis(Redis::independent(1).unwrap()),
            Kind::Redlock => Servers::Redis(Redis::independent(3).unwrap()),
            Kind::Postgres => Servers::Postgres(crate::postgres::server().await),
        };
        let numbers = TempFolder::new();
        Self {
            kind,
            servers,
            numbers,
        }
    }

    /// A proxy in front of each server.
    pub(super) fn proxies(&self) -> Vec<Proxy> {
        let to = |address| Proxy::to(address).unwrap();
        match &self.servers {
            Servers::Redis(servers) => servers.iter().map(|server| to(server.address())).collect(),
            Servers::Postgres(server) => vec![to(server.address())],
        }
    }

    /// Locks with anchored tokens, in one shard, through these proxies or, with none, directly.
    pub(super) fn builder(&self, through: &[Proxy]) -> Builder {
        builder(self.kind, &self.urls(through), self.numbers.path()).call_timeout(CALL)
    }

    /// Where epochs and tokens come from.
    pub(super) fn numbers(&self) -> &Path {
        self.numbers.path()
    }

    /// The PostgreSQL, with one connection that acquires.
    pub(super) fn config(&self, through: &[Proxy]) -> PgConfig {
        config(&self.urls(through)[0])
    }

    pub(super) fn urls(&self, through: &[Proxy]) -> Vec<String> {
        let direct: Vec<_> = match &self.servers {
            Servers::Redis(servers) => {
                let urls = servers
                    .iter()
                    .map(|server| (server.url(), server.address()));
                urls.collect()
            }
            Servers::Postgres(server) => vec![(server.url(), server.address())],
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
            Servers::Redis(servers) => {
                let patterns = ["sl:*:l:*", "sl:*:q:*"];
                let keys = servers.iter().flat_map(|server| {
                    let keys = |pattern| server.cli(&["KEYS", pattern]).unwrap();
                    patterns.map(keys)
                });
                keys.collect::<Vec<_>>().join("\n")
            }
            Servers::Postgres(server) => server.query(HELD).unwrap(),
        };
        let lines = lines.lines().filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    }

    /// How many connections the servers have from locks, whatever has become of their other end.
    pub(super) fn connections(&self) -> usize {
        const OURS: &str =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'soldonce-lease'";
        match &self.servers {
            Servers::Redis(servers) => {
                let of = |server: &Redis| {
                    let list = server.cli(&["CLIENT", "LIST"]).unwrap();
                    // One of them asks.
                    list.lines()
                        .filter(|line| !line.contains("cmd=client|list"))
                        .count()
                };
                servers.iter().map(of).sum()
            }
            Servers::Postgres(server) => server.query(OURS).unwrap().parse().unwrap(),
        }
    }

    /// How many scripts each server has run; PostgreSQL does not count them.
    pub(super) fn served(&self) -> Vec<u64> {
        let Servers::Redis(servers) = &self.servers else {
            return Vec::new();
        };
        let of = |server: &Redis| {
            let stats = server.cli(&["INFO", "commandstats"]).unwrap();
            let (_, rest) = stats.split_once("cmdstat_evalsha:calls=")?;
            rest.split(',').next()?.parse().ok()
        };
        servers
            .iter()
            .map(|server| of(server).unwrap_or(0))
            .collect()
    }

    /// Tells the servers all scripts, so that each call is one request.
    pub(super) fn load_scripts(&self) {
        let Servers::Redis(servers) = &self.servers else {
            return;
        };
        for server in servers {
            for file in scripts() {
                server.cli(&["SCRIPT", "LOAD", &script(&file)]).unwrap();
            }
        }
    }

    /// Lets the servers forget what they need not know: the next acquire needs every step there is.
    pub(super) fn forget(&self) {
        let Servers::Redis(servers) = &self.servers else {
            return;
        };
        for server in servers {
            server.cli(&["SCRIPT", "FLUSH"]).unwrap();
            let records = server.cli(&["KEYS", "sl:*:f"]).unwrap();
            for record in records.lines().filter(|record| !record.is_empty()) {
                server.cli(&["DEL", record]).unwrap();
            }
        }
    }
}

/// Locks with anchored tokens, in one shard. Nodes of a Redlock vote at once, however young.
pub(super) fn builder(kind: Kind, urls: &[String], numbers: &Path) -> Builder {
    let builder = match kind {
        Kind::Redis => Locks::redis(&*urls[0]).epochs(FileEpochs::new(numbers)),
        Kind::Redlock => {
            let config = RedlockConfig::new(nodes(urls)).sit_out(Duration::ZERO);
            Locks::redlock(config).tokens(FileTokens::new(numbers))
        }
        Kind::Postgres => Locks::postgres(config(&urls[0])),
    };
    builder.namespace("app").shards(1).doctor(Doctor::Off)
}

pub(super) fn nodes(urls: &[String]) -> Vec<RedisConfig> {
    urls.iter().map(|url| RedisConfig::from(&**url)).collect()
}

fn config(url: &str) -> PgConfig {
    PgConfig::url(url).unwrap().connections(1)
}

fn folder_of_scripts() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/backend/redis/scripts"
    ))
}

/// Files of all scripts.
pub(super) fn scripts() -> Vec<String> {
    let files = folder_of_scripts().read_dir().unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    files.collect()
}

pub(super) fn script(file: &str) -> String {
    std::fs::read_to_string(folder_of_scripts().join(file)).unwrap()
}

/// The names of the statements on leases, as the sources have them: `-- lease_acquire`.
pub(super) fn statements() -> Vec<String> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/backend/postgres"));
    let mut names = Vec::new();
    for file in folder.read_dir().unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(path).unwrap();
            let titles = text.lines().filter_map(|line| line.strip_prefix("-- "));
            names.extend(
                titles
                    .filter(|name| name.starts_with("lease_"))
                    .map(str::to_owned),
            );
        }
    }
    names
}
