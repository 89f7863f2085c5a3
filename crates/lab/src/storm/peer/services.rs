//! What all contenders stand on: a private PostgreSQL that keeps what it acknowledges and a private
//! Redis or Redis Cluster, in temporary folders; and how each contender is started on them.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use soldonce_engine::ledger::postgres::{self, PostgresOptions};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::program;
use soldonce_testkit::redis::{FullCoverage, Redis, RedisCluster};
use tokio::process::Command;

use super::super::StormArgs;
use super::contender::{Contender, Flow};
use crate::bench::product;
use crate::exit::usage;

/// Everybody may ask as often as he likes.
const LIMITS_OFF: [&str; 2] = ["--limit-keys", "off"];

/// The services and the programs.
pub(super) struct Services {
    postgres: Postgres,
    redis: Servers,
    node: PathBuf,
    peer: PathBuf,
}

enum Servers {
    One(Redis),
    Cluster(RedisCluster),
}

impl Servers {
    fn start(args: &StormArgs) -> anyhow::Result<Self> {
        Ok(if args.cluster {
            Self::Cluster(RedisCluster::start(FullCoverage::NotRequired)?)
        } else {
            Self::One(Redis::start()?)
        })
    }

    fn nodes(&self) -> &[Redis] {
        match self {
            Self::One(redis) => std::slice::from_ref(redis),
            Self::Cluster(cluster) => cluster.nodes(),
        }
    }

    /// As the product is told.
    fn url(&self) -> String {
        let scheme = match self {
            Self::One(_) => "redis",
            Self::Cluster(_) => "redis+cluster",
        };
        format!("{scheme}://{}", self.addresses())
    }

    /// As the peer is told: `HOST:PORT,HOST:PORT`.
    fn addresses(&self) -> String {
        let nodes = self.nodes().iter();
        let nodes: Vec<String> = nodes.map(|node| node.address().to_string()).collect();
        nodes.join(",")
    }

    fn describe(&self) -> anyhow::Result<String> {
        let version = |redis: &Redis| redis.info("redis_version");
        let version = self.nodes().first().map(version).transpose()?.flatten();
        let version = version.unwrap_or_default();
        Ok(match self {
            Self::One(_) => format!("private Redis {version}"),
            Self::Cluster(cluster) => {
                let nodes = cluster.nodes().len();
                format!("private Redis Cluster {version} of {nodes} nodes")
            }
        })
    }
}

impl Services {
    /// Starts them. Waits for it: not for a runtime's threads.
    ///
    /// # Errors
    /// When the folder is not that of the peer, or a program is not on this machine: says which line
    /// installs it.
    pub(super) fn start(args: &StormArgs, peer: &Path) -> anyhow::Result<Self> {
        is_ready(peer).map_err(usage)?;
        let postgres = Postgres::options()
            .durable()
            .line("shared_buffers = 128MB")
            .start();
        Ok(Self {
            node: program("node")?,
            postgres: postgres?,
            redis: Servers::start(args)?,
            peer: peer.to_owned(),
        })
    }

    /// Makes the product's tables; the peer makes its own.
    ///
    /// # Errors
    /// When the database does not let us.
    pub(super) async fn migrate(&self) -> anyhow::Result<()> {
        postgres::migrate(&PostgresOptions::new(self.postgres.url())).await?;
        Ok(())
    }

    /// What starts a contender; a ledger of its own is in `data`.
    ///
    /// # Errors
    /// When this program's own file is not known.
    pub(super) fn command(
        &self,
        contender: Contender,
        (key, data): (&str, &Path),
    ) -> anyhow::Result<Command> {
        match contender {
            Contender::Embedded => {
                let mut command = product(key)?;
                command.args(LIMITS_OFF).arg("--data").arg(data);
                Ok(command)
            }
            Contender::Shared => self.shared(key),
            Contender::Peer(flow) => Ok(self.peer(flow, key)),
        }
    }

    fn shared(&self, key: &str) -> anyhow::Result<Command> {
        let mut command = product(key)?;
        command
            .args(LIMITS_OFF)
            .args(["--database-url", &self.postgres.url()])
            .args(["--redis-url", &self.redis.url()]);
        Ok(command)
    }

    fn peer(&self, flow: Flow, key: &str) -> Command {
        let mut command = Command::new(&self.node);
        command
            .arg("server.js")
            .current_dir(&self.peer)
            .env("NODE_ENV", "production")
            .envs(flow.settings())
            .env("PEER_DATABASE_URL", self.postgres.url())
            .env("PEER_REDIS", self.redis.addresses())
            .env("PEER_KEY", key)
            .env("PEER_PORT", "0");
        command
    }

    /// What a report says of them.
    ///
    /// # Errors
    /// When one does not answer.
    pub(super) fn describe(&self) -> anyhow::Result<Vec<String>> {
        let postgres = self.postgres.query("-- lab_version\nSHOW server_version")?;
        let node = std::process::Command::new(&self.node)
            .arg("--version")
            .output()?;
        Ok(vec![
            format!("private PostgreSQL {postgres}, fsync on"),
            self.redis.describe()?,
            format!("Node {}", String::from_utf8_lossy(&node.stdout).trim()),
        ])
    }
}

fn is_ready(peer: &Path) -> anyhow::Result<()> {
    let folder = peer.display();
    ensure!(
        peer.join("server.js").is_file(),
        "--peer {folder}: no server.js there; the folder is deploy/peer"
    );
    ensure!(
        peer.join("node_modules").is_dir(),
        "--peer {folder}: its packages are missing; first `npm ci --prefix {folder}`"
    );
    Ok(())
}
