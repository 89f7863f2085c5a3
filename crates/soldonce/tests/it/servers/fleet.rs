//! Three servers on one PostgreSQL and one Redis Cluster of six nodes.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::{FullCoverage, RedisCluster};

use super::{SEATS, logs, soldonce, until};
use crate::crash::client::{Ask, Client};
use crate::crash::server::{PROGRAM, Server};
use crate::shop::{done, hall};

pub(super) const SERVERS: usize = 3;

/// The servers of a test and what is under them.
pub(super) struct Fleet {
    pub(super) database: Mutex<Postgres>,
    pub(super) cluster: Mutex<RedisCluster>,
    urls: [String; 2],
    servers: Mutex<Vec<Arc<Server>>>,
    logs: PathBuf,
    extra: Vec<&'static str>,
}

impl Fleet {
    /// Starts everything; `extra` are arguments of each server. The database waits for its disk.
    pub(super) fn start(test: &str, extra: &[&'static str]) -> Self {
        let database = Postgres::options().durable().start().unwrap();
        soldonce(&["migrate"], &database);
        let cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
        let nodes = cluster.nodes().iter();
        let nodes: Vec<String> = nodes.map(|node| node.address().to_string()).collect();
        let redis = format!("redis+cluster://{}", nodes.join(","));
        let fleet = Self {
            urls: [database.url(), redis],
            database: Mutex::new(database),
            cluster: Mutex::new(cluster),
            servers: Mutex::default(),
            logs: logs(test),
            extra: extra.to_vec(),
        };
        let servers = (0..SERVERS).map(|place| fleet.serve(place)).collect();
        *fleet.servers.lock().unwrap() = servers;
        fleet
    }

    fn serve(&self, place: usize) -> Arc<Server> {
        let [database, redis] = &self.urls;
        let mut command = Command::new(PROGRAM);
        command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--shoppers",
                "open",
                "--free-sales=on",
            ])
            .args(["--database-url", database, "--redis-url", redis])
            .args(&self.extra);
        let log = self.logs.join(place.to_string());
        Arc::new(Server::run(command, &log).unwrap())
    }

    /// The server that has this place now.
    pub(super) fn server(&self, place: usize) -> Arc<Server> {
        Arc::clone(&self.servers.lock().unwrap()[place % SERVERS])
    }

    pub(super) fn client(&self, place: usize, name: &str) -> Client {
        self.server(place).client(name)
    }

    /// SIGKILL, and a new process in its place.
    pub(super) fn kill(&self, places: &[usize]) {
        for place in places {
            self.server(*place).signal_kill();
        }
        for place in places {
            let fresh = self.serve(*place);
            self.servers.lock().unwrap()[*place] = fresh;
        }
    }

    /// An event of so many rows of a hundred seats, known to every server.
    pub(super) fn event(&self, rows: usize, policy: &Value) {
        let mut hall = hall("hamlet-1", rows, 100);
        hall["policy"] = policy.clone();
        done(&mut self.client(0, "maker"), &Ask::post("/v1/events", hall));
        for place in 0..SERVERS {
            until(&mut self.client(place, "looker"), SEATS, |_| true);
        }
    }
}
