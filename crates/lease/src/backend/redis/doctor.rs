//! The doctor's checks of Redis: settings that lose leases, and what the server hides. Of a cluster
//! it checks one primary, that of the first shard. `lease.md` 8.

use std::time::Duration;

use super::server_info::{self, ServerInfo};
use super::{ConnectionRole, RedisBackend, keys::Shard, reply};
use crate::backend::{Finding, Kind, Verdict};

/// Oldest version with script flags and sharded channels.
const VERSION_MIN: (u32, u32, u32) = (7, 0, 0);

/// A larger clock skew confuses people who compare logs.
const OFFSET_MAX: Duration = Duration::from_secs(1);

/// Total error, in ms, of three times that are rounded to whole milliseconds.
const ROUNDED_MS: i64 = 2;

impl RedisBackend {
    pub(super) async fn examine(&self) -> Vec<Finding> {
        let sent = self.clock.boot();
        let info = self.look(&["INFO"]).await;
        let mut findings = vec![Finding::round_trip(self.clock.boot().since(sent))];
        let shown = info.as_deref().map(ServerInfo::of);
        if self.calls.fenced {
            findings.push(tokens(shown.as_ref()));
        }
        let Some(server) = shown else {
            let what = "INFO is not answered";
            findings.push(hidden("server settings", what, "allow INFO"));
            return findings;
        };
        findings.extend([version(&server), role(&server), script_fixes(&server)]);
        findings.push(self.eviction(&server).await);
        findings.push(self.durability(&server).await);
        let needed = self.setting("min-replicas-to-write").await;
        findings.push(replicas(&server, needed.as_deref()));
        findings.push(self.clock_offset().await);
        findings.push(self.epochs_left().await);
        if self.facts.kind == Kind::Cluster {
            let full = self.setting("cluster-require-full-coverage").await;
            let timeout = self.setting("cluster-node-timeout").await;
            findings.push(coverage(full.as_deref()));
            findings.push(node_timeout(timeout.as_deref()));
        }
        findings
    }

    /// Runs a plain command and returns its text; `None` if the server refuses.
    async fn look(&self, words: &[&str]) -> Option<String> {
        let mut command = redis::Cmd::new();
        command.arg(words);
        let command = (Shard::default(), &command);
        let limit = self.call_timeout;
        let answer = self.link.plain(command, ConnectionRole::Main, limit);
        server_info::text(answer.await.ok()?)
    }

    /// Reads a setting by its name; `None` if the server hides it.
    async fn setting(&self, name: &str) -> Option<String> {
        let answer = self.look(&["CONFIG", "GET", name]).await?;
        let value = answer.lines().nth(1)?;
        Some(value.to_owned())
    }

    async fn eviction(&self, server: &ServerInfo<'_>) -> Finding {
        let policy = match server.field("maxmemory_policy") {
            Some(policy) => Some(policy.to_owned()),
            None => self.setting("maxmemory-policy").await,
        };
        let fix = "set maxmemory-policy noeviction: an evicted key is a lost lease";
        let Some(policy) = policy else {
            return hidden("eviction", "the policy is hidden", fix);
        };
        let bad = match server.field("maxmemory") {
            None | Some("0") => Verdict::Warn,
            Some(_) => Verdict::Fail,
        };
        let check = ("eviction", policy == "noeviction", bad);
        Finding::judged(check, format!("maxmemory-policy {policy}"), fix)
    }

    async fn durability(&self, server: &ServerInfo<'_>) -> Finding {
        let check = "leases survive a restart";
        let fix = "set appendonly yes and appendfsync always, or expect a lease to be granted \
                   twice after a crash; tokens rise either way";
        let logs = server.field("aof_enabled") == Some("1");
        let Some(fsync) = self.setting("appendfsync").await else {
            return hidden(check, "appendfsync is hidden", fix);
        };
        let found = if logs {
            format!("appendfsync {fsync}")
        } else {
            "appendonly no".to_owned()
        };
        let check = (check, logs && fsync == "always", Verdict::Warn);
        Finding::judged(check, found, fix)
    }

    async fn clock_offset(&self) -> Finding {
        let (sent, here_ms) = (self.clock.boot(), self.clock.wall_ms());
        let answer = self.look(&["TIME"]).await;
        let round_trip = self.clock.boot().since(sent);
        let Some(there_ms) = answer.as_deref().and_then(server_info::time_ms) else {
            return hidden("clock offset", "TIME is not answered", "allow TIME");
        };
        // The server read its clock about halfway.
        let halfway = i64::try_from((round_trip / 2).as_millis()).unwrap_or(i64::MAX);
        let offset = here_ms.saturating_add(halfway).abs_diff(there_ms);
        let apart = Duration::from_millis(offset).saturating_sub(round_trip / 2);
        let error = halfway.saturating_add(ROUNDED_MS);
        let fix = "synchronise both clocks; leases do not depend on it, people who read logs do";
        let check = ("clock offset", apart <= OFFSET_MAX, Verdict::Warn);
        Finding::judged(check, format!("{offset} ms, give or take {error} ms"), fix)
    }

    async fn epochs_left(&self) -> Finding {
        let fence = self.keys.fence(Shard::default()).to_string();
        let record = self.look(&["GET", &fence]).await;
        Finding::epochs_left(record.map_or(0, |record| reply::epoch_of(&record)))
    }
}

fn hidden(check: &'static str, found: &str, fix: &str) -> Finding {
    Finding::new(check, Verdict::NotVerifiable, found, fix)
}

/// Checks that the replication id is shown: by it scripts see that the server has lost its data.
fn tokens(server: Option<&ServerInfo<'_>>) -> Finding {
    let id = server.and_then(|server| server.field("master_replid"));
    let found = if id.is_some() { "shown" } else { "hidden" };
    let fix = "allow INFO, also inside scripts; a server that hides it grants leases without \
               tokens alone: no_fencing()";
    let check = ("tokens can be minted", id.is_some(), Verdict::Fail);
    Finding::judged(check, format!("master_replid is {found}"), fix)
}

fn version(server: &ServerInfo<'_>) -> Finding {
    let is_served = server.version() >= VERSION_MIN;
    let check = ("server version", is_served, Verdict::Fail);
    Finding::judged(check, server.product(), "use Redis 7.0 or later, or Valkey")
}

fn role(server: &ServerInfo<'_>) -> Finding {
    let role = server.field("role").unwrap_or("unknown");
    let check = ("role is primary", role == "master", Verdict::Fail);
    Finding::judged(check, role, "connect to the primary")
}

/// Checks for a security fix. Only warns: distributions apply it without a new version number.
fn script_fixes(server: &ServerInfo<'_>) -> Finding {
    let is_fixed = server.has_script_fixes();
    let fix = "see that the server has the fix of CVE-2025-49844 (Debian 12: 5:7.0.15-1~deb12u6)";
    let check = ("script engine is fixed", is_fixed, Verdict::Warn);
    Finding::judged(check, server.product(), fix)
}

fn replicas(server: &ServerInfo<'_>, needed: Option<&str>) -> Finding {
    let count = server.field("connected_slaves").unwrap_or("0");
    let shown = needed.unwrap_or("hidden");
    // With replicas, a failover may lose grants; a primary that is cut off should stop granting.
    let good = count == "0" || needed.is_some_and(|needed| needed != "0");
    let fix = "set min-replicas-to-write 1, so that a primary that is cut off grants for ten \
               seconds only";
    let check = ("a primary without replicas stops", good, Verdict::Warn);
    let found = format!("{count} replicas, min-replicas-to-write {shown}");
    Finding::judged(check, found, fix)
}

fn coverage(setting: Option<&str>) -> Finding {
    let check = "slots fail alone";
    let fix = "set cluster-require-full-coverage no, or all slots stop when one primary fails";
    let Some(value) = setting else {
        return hidden(check, "the setting is hidden", fix);
    };
    let found = format!("cluster-require-full-coverage {value}");
    Finding::judged((check, value == "no", Verdict::Warn), found, fix)
}

/// Checks that a lease outlives the vote on a new primary: twice the node time-out, and 3 s.
fn node_timeout(setting: Option<&str>) -> Finding {
    let check = "ttl outlives a failover";
    let millis = setting.and_then(|text| text.parse::<u64>().ok());
    let Some(millis) = millis else {
        let fix = "use ttls above 2 x node timeout + 3 s";
        return hidden(check, "the setting is hidden", fix);
    };
    let least = millis.saturating_mul(2).saturating_add(3_000);
    let fix = "lower cluster-node-timeout, or use longer ttls than the usual 10 s";
    let found =
        format!("cluster-node-timeout {millis} ms: ttls of {least} ms and more survive a failover");
    Finding::judged((check, least <= 10_000, Verdict::Warn), found, fix)
}
