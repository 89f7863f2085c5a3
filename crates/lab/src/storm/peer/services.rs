//! The services under all contenders, a private PostgreSQL that flushes what it commits and a private
//! Redis or Redis Cluster; and how each contender is started on them.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use soldonce_engine::ledger::postgres::{self, PostgresOptions};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::program;
use soldonce_testkit::redis::{FullCoverage, Redis, RedisCluster};
use tokio::process::Command;

use super::super::StormArgs;
use super::contender::{Contender, Flow};
use crate::exit::usage;
use crate::kit::{ANY_PORT, Service, private_postgres, private_redis, product, redis_version};

pub(super) struct Services {
    database: Service<Postgres>,
    redis: Servers,
    node: PathBuf,
    peer: PathBuf,
}

#[expect(clippy::large_enum_variant, reason = "there is one for a whole run")]
enum Servers {
    One(Service<Redis>),
    Cluster(RedisCluster),
}

impl Servers {
    fn nodes(&self) -> &[Redis] {
        match self {
            Self::One(redis) => redis.private.as_slice(),
            Self::Cluster(cluster) => cluster.nodes(),
        }
    }

    /// Returns its address as the product takes it.
    fn url(&self) -> String {
        match self {
            Self::One(redis) => redis.url.clone(),
            Self::Cluster(_) => format!("redis+cluster://{}", self.addresses()),
        }
    }

    /// Returns its addresses as the peer takes them: `HOST:PORT,HOST:PORT`.
    fn addresses(&self) -> String {
        let nodes = self.nodes().iter();
        let nodes = nodes.map(|node| node.address().to_string());
        nodes.collect::<Vec<_>>().join(",")
    }

    fn describe(&self) -> String {
        let nodes = self.nodes();
        let node = nodes.first().map(redis_version).unwrap_or_default();
        match self {
            Self::One(_) => node,
            Self::Cluster(_) => format!("Redis Cluster of {} nodes: {node}", nodes.len()),
        }
    }
}

impl Services {
    pub(super) fn start(args: &StormArgs, peer: &Path) -> anyhow::Result<Self> {
        check_peer(peer).map_err(usage)?;
        Ok(Self {
            node: program("node")?,
            database: private_postgres(&[])?,
            redis: if args.cluster {
                Servers::Cluster(RedisCluster::start(FullCoverage::NotRequired)?)
            } else {
                Servers::One(private_redis()?)
            },
            peer: peer.to_owned(),
        })
    }

    /// Makes the product's tables; the peer makes its own.
    pub(super) async fn migrate(&self) -> anyhow::Result<()> {
        postgres::migrate(&PostgresOptions::new(self.database.url.clone())).await?;
        Ok(())
    }

    /// Builds the command that starts a contender; a ledger of its own is in `data`.
    pub(super) fn command(
        &self,
        contender: Contender,
        (key, data): (&str, &Path),
    ) -> anyhow::Result<Command> {
        let mut command = match contender {
            Contender::Peer(flow) => return Ok(self.peer(flow, key)),
            Contender::Embedded | Contender::Shared => product(ANY_PORT, key)?,
        };
        command.args(["--limit-keys", "off"]);
        if contender == Contender::Embedded {
            command.arg("--data").arg(data);
        } else {
            command
                .args(["--database-url", &self.database.url])
                .args(["--redis-url", &self.redis.url()]);
        }
        Ok(command)
    }

    fn peer(&self, flow: Flow, key: &str) -> Command {
        let mut command = Command::new(&self.node);
        command
            .arg("server.js")
            .current_dir(&self.peer)
            .env("NODE_ENV", "production")
            .envs(flow.settings())
            .env("PEER_DATABASE_URL", &self.database.url)
            .env("PEER_REDIS", self.redis.addresses())
            .env("PEER_KEY", key)
            .env("PEER_PORT", "0");
        command
    }

    pub(super) fn describe(&self) -> anyhow::Result<Vec<String>> {
        let database = self.database.private.as_ref();
        let version = database.map(|one| one.query("-- lab_version\nSHOW server_version"));
        let version = version.transpose()?.unwrap_or_default();
        let mut node = std::process::Command::new(&self.node);
        let node = node.arg("--version").output()?;
        Ok(vec![
            format!("private PostgreSQL {version}, fsync on"),
            self.redis.describe(),
            format!("Node {}", String::from_utf8_lossy(&node.stdout).trim()),
        ])
    }
}

fn check_peer(peer: &Path) -> anyhow::Result<()> {
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
