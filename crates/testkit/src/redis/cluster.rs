//! A Redis Cluster of three primaries and three replicas. Every node begins with all nodes and
//! slots in its `nodes.conf`, so they need no `CLUSTER MEET`.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{ClientCertificate, Ports, Redis, RedisOptions};
use crate::server::{PATIENCE, until};
use crate::{Authority, Certificate};

/// Time after which a node that does not answer counts as failed (`cluster-node-timeout`): longer
/// than a machine stands still, so that no node is replaced unless a test asks for it.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);

/// The same after [`RedisCluster::fail_soon`].
const NODE_TIMEOUT_SHORT: Duration = Duration::from_secs(2);

const PRIMARIES: usize = 3;
const NODES: usize = 2 * PRIMARIES;
const SLOTS: u16 = 16_384;

/// Whether the cluster stops when some slots have no primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullCoverage {
    /// Slots without a primary stop all others too (the default of Redis).
    Required,
    /// The other slots keep working (what Soldonce advises).
    NotRequired,
}

/// Six nodes: three primaries, then a replica of each in the same order.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts the nodes and waits until every one says that the cluster is up and every replica has
    /// what its primary has. Redis itself makes a restarted primary wait 2 s.
    pub fn start(coverage: FullCoverage) -> Result<Self> {
        Self::start_with(&RedisOptions::default(), coverage)
    }

    /// Starts nodes that speak TLS with clients and with each other, without full coverage. The
    /// certificate is for 127.0.0.1. The test kit itself asks them without TLS.
    pub fn start_tls(own: &Certificate, by: &Authority) -> Result<Self> {
        let options = RedisOptions::default().tls(own, by, ClientCertificate::Optional);
        let options = options.line("tls-cluster yes").line("tls-replication yes");
        Self::start_with(&options, FullCoverage::NotRequired)
    }

    fn start_with(base: &RedisOptions, coverage: FullCoverage) -> Result<Self> {
        let ports: Vec<Ports> = (0..NODES)
            .map(|_| Ports::reserve())
            .collect::<Result<_>>()?;
        let encrypted = base.tls.is_some();
        let told = |ports: &Ports| {
            let clients = if encrypted {
                &ports.encrypted
            } else {
                &ports.clients
            };
            [clients.number(), ports.nodes.number()]
        };
        let told: Vec<_> = ports.iter().map(told).collect();
        let pictures: Vec<String> = (0..NODES).map(|me| picture(&told, me)).collect();
        let launched = ports.into_iter().zip(pictures);
        let launched: Vec<Redis> = launched
            .map(|(ports, picture)| Redis::launch(options(base, coverage, picture), ports))
            .collect::<Result<_>>()?;
        let nodes = launched.into_iter().map(Redis::ready);
        let cluster = Self {
            nodes: nodes.collect::<Result<_>>()?,
        };
        cluster.await_ok()?;
        Ok(cluster)
    }

    /// Lets a node that does not answer count as failed after two seconds from now on.
    pub fn fail_soon(&self) -> Result<()> {
        let millis = NODE_TIMEOUT_SHORT.as_millis().to_string();
        for node in &self.nodes {
            node.cli(&["CONFIG", "SET", "cluster-node-timeout", &millis])?;
        }
        Ok(())
    }

    /// Returns all nodes in the order of their start.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// Finds a node by its place in that order, from 0, to stop or kill it. Fails from 6 on.
    pub fn node(&mut self, place: usize) -> Result<&mut Redis> {
        self.nodes.get_mut(place).context("a cluster has six nodes")
    }

    /// Returns the URLs of all nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Redis::url).collect()
    }

    /// Finds the place of the node that was made the primary of `key` at the start.
    pub fn node_of(&self, key: &str) -> Result<usize> {
        let slot = self.ask_any(&["CLUSTER", "KEYSLOT", key])?.parse()?;
        (0..PRIMARIES)
            .find(|place| slots(*place).contains(&slot))
            .context("every slot has a primary")
    }

    /// Finds the place of the primary of `key` now, as the first node that answers sees it.
    pub fn primary_of(&self, key: &str) -> Result<usize> {
        let slot: u16 = self.ask_any(&["CLUSTER", "KEYSLOT", key])?.parse()?;
        let nodes = self.ask_any(&["CLUSTER", "NODES"])?;
        let line = nodes.lines().find(|line| owns(line, slot));
        let id = line.and_then(|line| line.split(' ').next());
        let id = id.with_context(|| format!("slot {slot} has no primary"))?;
        (0..NODES)
            .find(|place| node_id(*place) == id)
            .context("the primary is none of ours")
    }

    /// Waits until every node says that the cluster is up and its replicas follow.
    pub fn await_ok(&self) -> Result<()> {
        until("the cluster is up on all nodes", PATIENCE, || {
            self.nodes.iter().all(says_ok) && self.replicas_follow()
        })
    }

    fn replicas_follow(&self) -> bool {
        let (primaries, replicas) = self.nodes.split_at(PRIMARIES);
        primaries.iter().zip(replicas).all(|(primary, replica)| {
            replica.is_in_sync_with(primary) || primary.is_in_sync_with(replica)
        })
    }

    fn ask_any(&self, command: &[&str]) -> Result<String> {
        let mut answers = self.nodes.iter().map(|node| node.cli(command));
        let answer = answers.find_map(Result::ok);
        answer.with_context(|| format!("no node answers {command:?}"))
    }
}

fn options(base: &RedisOptions, coverage: FullCoverage, picture: String) -> RedisOptions {
    let full = match coverage {
        FullCoverage::Required => "yes",
        FullCoverage::NotRequired => "no",
    };
    let mut options = base
        .clone()
        .line(&format!(
            "cluster-node-timeout {}",
            NODE_TIMEOUT.as_millis()
        ))
        .line(&format!("cluster-require-full-coverage {full}"));
    options.nodes = Some(picture);
    options
}

fn says_ok(node: &Redis) -> bool {
    let info = node.cli(&["CLUSTER", "INFO"]).unwrap_or_default();
    info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:6")
}

/// Returns the id of a node: 40 hex digits, the same in every run.
fn node_id(place: usize) -> String {
    format!("{:040x}", place + 1)
}

/// Returns the slots that a primary has at the start.
fn slots(primary: usize) -> std::ops::RangeInclusive<u16> {
    let edge = |place: usize| SLOTS / 3 * u16::try_from(place).unwrap_or(0);
    let last = if primary + 1 == PRIMARIES {
        SLOTS - 1
    } else {
        edge(primary + 1) - 1
    };
    edge(primary)..=last
}

/// Writes `nodes.conf` of the node `me`: id, address, flags, primary, times, epoch, link, slots.
fn picture(ports: &[[u16; 2]], me: usize) -> String {
    let mut lines = String::new();
    for (place, [clients, nodes]) in ports.iter().enumerate() {
        let myself = if place == me { "myself," } else { "" };
        let primary = place % PRIMARIES;
        let epoch = primary + 1;
        let role = if place == primary {
            let slots = slots(primary);
            let range = format!("{}-{}", slots.start(), slots.end());
            format!("{myself}master - 0 0 {epoch} connected {range}")
        } else {
            let follows = node_id(primary);
            format!("{myself}slave {follows} 0 0 {epoch} connected")
        };
        let line = format!("{} 127.0.0.1:{clients}@{nodes} {role}\n", node_id(place));
        lines.push_str(&line);
    }
    writeln!(lines, "vars currentEpoch {PRIMARIES} lastVoteEpoch 0").ok();
    lines
}

/// Tells whether a line of `CLUSTER NODES` is that of a primary with this slot.
fn owns(line: &str, slot: u16) -> bool {
    let mut fields = line.split(' ').skip(2);
    let flags = fields.next().unwrap_or_default();
    let works = flags.contains("master") && !flags.split(',').any(|flag| flag == "fail");
    works && fields.skip(5).any(|range| covers(range, slot))
}

/// Tells whether `range`, such as `5` or `0-5460`, is or contains the slot.
fn covers(range: &str, slot: u16) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (first.parse::<u16>(), last.parse::<u16>()) {
        (Ok(first), Ok(last)) => (first..=last).contains(&slot),
        _ => false, // a slot that is being moved stands in brackets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slots_are_divided_without_a_gap() {
        let ranges: Vec<_> = (0..PRIMARIES).map(slots).collect();
        assert_eq!((*ranges[0].start(), *ranges[2].end()), (0, SLOTS - 1));
        assert_eq!(ranges[0].end() + 1, *ranges[1].start());
        assert_eq!(ranges[1].end() + 1, *ranges[2].start());
    }

    #[test]
    fn the_primary_of_a_slot_is_read() {
        let line = "ab 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-99 200";
        assert!(owns(line, 99) && owns(line, 200) && !owns(line, 100));
        assert!(!owns(
            "ab 127.0.0.1:1@2 master,fail - 0 0 1 connected 0-99",
            5
        ));
        assert!(!owns("ab 127.0.0.1:1@2 slave cd 0 0 1 connected", 5));
    }
}
