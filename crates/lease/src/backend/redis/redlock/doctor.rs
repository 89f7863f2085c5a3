//! The doctor's checks of the nodes of a Redlock. `lease.md` 8.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Redlock;
use super::nodes::Node;
use super::quorum::majority;
use crate::BackendError;
use crate::backend::redis::keys::Shard;
use crate::backend::redis::reply;
use crate::backend::redis::role::ConnectionRole;
use crate::backend::redis::server_info::{self, ServerInfo};
use crate::backend::{Finding, Verdict};

/// Longest wait for one node.
const LIMIT: Duration = Duration::from_millis(500);

struct Info {
    run_id: String,
    role: String,
    replicas: u64,
    uptime: Duration,
}

pub(super) async fn examine(redlock: &Redlock) -> Vec<Finding> {
    let mut answers = redlock
        .nodes
        .ask(|node| Box::pin(async move { ask(&node).await }));
    let mut nodes = Vec::new();
    let mut silent = Vec::new();
    while let Some((at, answer)) = answers.recv().await {
        match answer {
            Ok(info) => nodes.push((at, info)),
            Err(error) => silent.push(format!("node {at}: {error}")),
        }
    }
    nodes.sort_by_key(|(at, _)| *at);
    vec![
        reached(redlock.nodes.len(), silent),
        distinct(&nodes),
        alone(&nodes),
        uptimes(&nodes, redlock.config.sit_out),
    ]
}

async fn ask(node: &Node) -> Result<Info, BackendError> {
    let (shard, info) = (Shard::default(), redis::cmd("INFO"));
    let answer = node.link.plain((shard, &info), ConnectionRole::Main, LIMIT);
    let text = server_info::text(answer.await?).ok_or_else(reply::odd)?;
    let told = ServerInfo::of(&text);
    let word = |field| told.field(field).unwrap_or_default().to_owned();
    let number = |field| told.field(field).and_then(|value| value.parse().ok());
    Ok(Info {
        run_id: word("run_id"),
        role: word("role"),
        replicas: number("connected_slaves").unwrap_or(0),
        uptime: Duration::from_secs(number("uptime_in_seconds").unwrap_or(0)),
    })
}

/// Judges a check that finds fault with single nodes; `all` says that there is none.
fn of_nodes(
    (check, bad): (&'static str, Verdict),
    faults: impl Iterator<Item = String>,
    (all, fix): (String, &str),
) -> Finding {
    let faults: Vec<String> = faults.collect();
    let is_good = faults.is_empty();
    let found = if is_good { all } else { faults.join("; ") };
    Finding::judged((check, is_good, bad), found, fix)
}

fn reached(nodes: usize, silent: Vec<String>) -> Finding {
    let bad = if nodes - silent.len() < majority(nodes) {
        Verdict::Fail
    } else {
        Verdict::Warn
    };
    let fix = "bring the silent nodes back; without a majority nothing is granted";
    let all = format!("all {nodes}");
    of_nodes(("nodes answer", bad), silent.into_iter(), (all, fix))
}

fn distinct(nodes: &[(usize, Info)]) -> Finding {
    let ids: BTreeSet<&str> = nodes.iter().map(|(_, info)| info.run_id.as_str()).collect();
    let fix = "two addresses lead to one server, which then votes twice: name each server once";
    let is_good = ids.len() == nodes.len();
    let found = format!("{} servers behind {} addresses", ids.len(), nodes.len());
    Finding::judged(("nodes are distinct", is_good, Verdict::Fail), found, fix)
}

fn alone(nodes: &[(usize, Info)]) -> Finding {
    let is_coupled = |info: &Info| info.role != "master" || info.replicas > 0;
    let coupled = nodes.iter().filter(|(_, info)| is_coupled(info));
    let faults = coupled
        .map(|(at, info)| format!("node {at}: {} with {} replicas", info.role, info.replicas));
    let fix = "run every node as a primary without replicas: a promotion forgets votes";
    let all = "primaries without replicas".to_owned();
    let check = ("nodes are independent", Verdict::Fail);
    of_nodes(check, faults, (all, fix))
}

fn uptimes(nodes: &[(usize, Info)], sit_out: Duration) -> Finding {
    // In whole seconds, rounded down at its start and now.
    let age = |info: &Info| info.uptime.saturating_sub(Duration::from_secs(1));
    let young = nodes.iter().filter(|(_, info)| age(info) < sit_out);
    let faults = young.map(|(at, info)| format!("node {at}: up {} s", info.uptime.as_secs()));
    let fix = "wait: a node votes when it has been up for the longest ttl";
    let all = format!("all above {} s", sit_out.as_secs());
    let check = ("nodes are old enough to vote", Verdict::Warn);
    of_nodes(check, faults, (all, fix))
}
