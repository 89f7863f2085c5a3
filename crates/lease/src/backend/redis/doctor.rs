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
        findings.push(replicas(
            &server,
            self.setting("min-replicas-to-write").await.as_deref(),
        ));
        findings.push(self.clock_offset().await);
        findings.push(self.epochs_left().await);
        if self.facts.kind == Kind::Cluster {
            findings.push(coverage(
                self.setting("cluster-require-full-coverage")
                    .await
                    .as_deref(),
            ));
            findings.push(node_timeout(
                self.setting("cluster-node-timeout").await.as_deref(),
            ));
        }
        findings
    }

    /// Runs a plain command and returns its text; `None` if the server refuses.
    async fn look(&self, words: &[&str]) -> Option<String> {
        let mut command = redis::Cmd::new();
        command.arg(words);
        let shard = Shard::default();
        let answer = self
            .link
            .plain((shard, &command), ConnectionRole::Main, self.call_timeout)
            .await;
        server_info::text(answer.ok()?)
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
        let Some(policy) = policy else {
            return hidden(
                "eviction",
                "the policy is hidden",
                "set maxmemory-policy noeviction",
            );
        };
        let bounded = server.field("maxmemory").is_some_and(|bytes| bytes != "0");
        let keeps = policy == "noeviction";
        let worst = if bounded {
            Verdict::Fail
        } else {
            Verdict::Warn
        };
        Finding::judged(
            ("eviction", keeps, worst),
            format!("maxmemory-policy {policy}"),
            "set maxmemory-policy noeviction: an evicted key is a lost lease",
        )
    }

    async fn durability(&self, server: &ServerInfo<'_>) -> Finding {
        let logs = server.field("aof_enabled") == Some("1");
        let Some(fsync) = self.setting("appendfsync").await else {
            let fix = "set appendonly yes and appendfsync always";
            return hidden("leases survive a restart", "appendfsync is hidden", fix);
        };
        let found = if logs {
            format!("appendfsync {fsync}")
        } else {
            "appendonly no".to_owned()
        };
        Finding::judged(
            (
                "leases survive a restart",
                logs && fsync == "always",
                Verdict::Warn,
            ),
            found,
            "set appendonly yes and appendfsync always, or expect a lease to be granted twice \
             after a crash; tokens rise either way",
        )
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
        Finding::judged(
            ("clock offset", apart <= OFFSET_MAX, Verdict::Warn),
            format!(
                "{offset} ms, give or take {} ms",
                halfway.saturating_add(ROUNDED_MS)
            ),
            "synchronise both clocks; leases do not depend on it, people who read logs do",
        )
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
    Finding::judged(
        ("tokens can be minted", id.is_some(), Verdict::Fail),
        format!("master_replid is {found}"),
        "allow INFO, also inside scripts; a server that hides it grants leases without tokens alone: \
         no_fencing()",
    )
}

fn version(server: &ServerInfo<'_>) -> Finding {
    Finding::judged(
        (
            "server version",
            server.version() >= VERSION_MIN,
            Verdict::Fail,
        ),
        server.product(),
        "use Redis 7.0 or later, or Valkey",
    )
}

fn role(server: &ServerInfo<'_>) -> Finding {
    let role = server.field("role").unwrap_or("unknown");
    Finding::judged(
        ("role is primary", role == "master", Verdict::Fail),
        role.to_owned(),
        "connect to the primary",
    )
}

/// Checks for a security fix. Only warns: distributions apply it without a new version number.
fn script_fixes(server: &ServerInfo<'_>) -> Finding {
    let check = "script engine is fixed";
    Finding::judged(
        (check, server.has_script_fixes(), Verdict::Warn),
        server.product(),
        "see that the server has the fix of CVE-2025-49844 (Debian 12: 5:7.0.15-1~deb12u6)",
    )
}

fn replicas(server: &ServerInfo<'_>, needed: Option<&str>) -> Finding {
    let count = server.field("connected_slaves").unwrap_or("0");
    let found = format!(
        "{count} replicas, min-replicas-to-write {}",
        needed.unwrap_or("hidden")
    );
    // With replicas, a failover may lose grants; a primary that is cut off should stop granting.
    let good = count == "0" || needed.is_some_and(|needed| needed != "0");
    Finding::judged(
        ("a primary without replicas stops", good, Verdict::Warn),
        found,
        "set min-replicas-to-write 1, so that a primary that is cut off grants for ten seconds only",
    )
}

fn coverage(setting: Option<&str>) -> Finding {
    let check = "slots fail alone";
    let fix = "set cluster-require-full-coverage no, or all slots stop when one primary fails";
    match setting {
        Some(value) => {
            let found = format!("cluster-require-full-coverage {value}");
            Finding::judged((check, value == "no", Verdict::Warn), found, fix)
        }
        None => hidden(check, "the setting is hidden", fix),
    }
}

/// Checks that a lease outlives the vote on a new primary: twice the node time-out, and 3 s.
fn node_timeout(setting: Option<&str>) -> Finding {
    let check = "ttl outlives a failover";
    let millis = setting.and_then(|text| text.parse::<u64>().ok());
    let Some(millis) = millis else {
        return hidden(
            check,
            "the setting is hidden",
            "use ttls above 2 x node timeout + 3 s",
        );
    };
    let least = millis.saturating_mul(2).saturating_add(3_000);
    Finding::judged(
        (check, least <= 10_000, Verdict::Warn),
        format!("cluster-node-timeout {millis} ms: ttls of {least} ms and more survive a failover"),
        "lower cluster-node-timeout, or use longer ttls than the usual 10 s",
    )
}
