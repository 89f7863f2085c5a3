//! Clients in two processes add to guarded counters on real servers while a seeded script of faults
//! hurts the servers, the network between and the clients. What they saw is put together and judged:
//! no two held at once, tokens rose, no stale write got in, no update was lost. Planted bugs
//! must be found by the same judge.
//!
//! The faults come from the seed; when the machine lets them happen does not.
//!
//! By hand: `SOLDONCE_STORM_SEED` chooses the seed, `SOLDONCE_STORM_TIMES` multiplies the time.

mod blows;
mod client;
mod draw;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::history::{History, Recorder, Refusals, Verdict};
use serde::{Deserialize, Serialize};
use soldonce_lease::SystemClock;
use soldonce_testkit::TempFolder;
use soldonce_testkit::player::{Part, Player};
use soldonce_testkit::postgres::Postgres;

use super::counter;
use super::ms;
use super::site::{Kind, Site};
use blows::Storm;

/// What is held, and the rows that are added to.
pub(super) const NAMES: [&str; 2] = ["hall", "row"];

const PROCESSES: u32 = 2;

/// Clients of each process.
const CLIENTS: u32 = 4;

/// Grants that each of them has at least.
const GRANTS_LEAST: u32 = 2;

const TIME: Duration = Duration::from_secs(3);

/// How much longer a storm may take to find a bug, on a busy machine too.
const FINDS_IN: u32 = 3;

/// Time between two blows.
const LULL: Duration = ms(60);

/// What is wrong with the clients, or with what they were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Planted {
    /// They write without a gate.
    NoGate,
    /// Their tokens come from a bare counter in Redis.
    BareCounter,
    /// Nodes of a Redlock vote right after they were restarted.
    YoungVotes,
}

/// What one process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    kind: Kind,
    urls: Vec<String>,
    numbers: PathBuf,
    target: String,
    planted: Option<Planted>,
    seed: u64,
    first_client: u32,
    time: Duration,
    report: PathBuf,
}

/// What its clients saw, and how often they were told that they had added one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Report {
    history: History,
    added: BTreeMap<String, i64>,
}

/// A run that is planned.
struct Run {
    kind: Kind,
    planted: Option<Planted>,
    seed: u64,
    time: Duration,
}

impl Run {
    fn of(kind: Kind, planted: Option<Planted>) -> Self {
        let number = |variable: &str| std::env::var_os(variable)?.to_str()?.parse().ok();
        let times = number("SOLDONCE_STORM_TIMES").unwrap_or(1);
        let times = u32::try_from(times).unwrap() * planted.map_or(1, |_| FINDS_IN);
        Self {
            kind,
            planted,
            seed: number("SOLDONCE_STORM_SEED").unwrap_or(0x50_1d_0c_e5),
            time: TIME * times,
        }
    }

    /// Plays the clients, if this process is to; else hurts those who do, and judges.
    fn judge(&self) -> Option<Judgement> {
        if let Some(part) = Part::of_this_process() {
            client::play(part);
            return None;
        }
        let runtime = soldonce_testkit::runtime().unwrap();
        let mut site = runtime.block_on(Site::start(self.kind));
        let target = Postgres::start().unwrap();
        counter::make(&target, &NAMES);
        let (reports, recorder) = (
            TempFolder::new().unwrap(),
            Recorder::new(Arc::new(SystemClock)),
        );
        let proxies = site.proxies();
        let plans: Vec<Plan> = (0..PROCESSES)
            .map(|process| Plan {
                kind: self.kind,
                urls: site.urls(&proxies),
                numbers: site.numbers().to_owned(),
                target: target.url(),
                planted: self.planted,
                seed: self.seed.wrapping_add(u64::from(process)),
                first_client: process * CLIENTS,
                time: self.time,
                report: reports.path().join(process.to_string()),
            })
            .collect();
        let mut players: Vec<Player> = plans.iter().map(start).collect();
        for player in &mut players {
            assert_eq!(player.hear().unwrap(), "ready");
        }
        for player in &mut players {
            player.tell("go").unwrap();
        }
        let mut storm = Storm {
            site: &mut site,
            proxies: &proxies,
            players: &mut players,
            recorder: &recorder,
            only_losses: self.planted.is_some(),
        };
        let blows = storm.rage(self.seed, self.time);
        for player in &mut players {
            assert_eq!(player.hear().unwrap(), "done");
        }
        let mut all = Report::default();
        all.history.merge(recorder.history());
        for plan in &plans {
            all.add(serde_json::from_slice(&fs::read(&plan.report).unwrap()).unwrap());
        }
        Some(Judgement::of(self, &all, &target, &blows))
    }
}

fn start(plan: &Plan) -> Player {
    Player::start(&[&serde_json::to_string(plan).unwrap()]).unwrap()
}

impl Report {
    fn add(&mut self, other: Self) {
        self.history.merge(other.history);
        for (name, added) in other.added {
            *self.added.entry(name).or_default() += added;
        }
    }
}

struct Judgement {
    violations: Vec<String>,
    /// Updates that a client was told of, and that the target does not have.
    lost_updates: i64,
    story: String,
}

impl Judgement {
    fn of(run: &Run, all: &Report, target: &Postgres, blows: &[String]) -> Self {
        let history = &all.history;
        let violations = history.check(Refusals::Free);
        let lost = NAMES.into_iter().map(|name| {
            let told = all.added.get(name).copied().unwrap_or_default();
            told - counter::value(target, name)
        });
        let stale = |verdict: &Verdict| matches!(verdict, Verdict::Stale { .. });
        let stale = history.writes.iter().filter(|write| stale(&write.verdict));
        let story = format!(
            "seed {} (SOLDONCE_STORM_SEED), {:?}: {} grants, {} refused, {} unknown, {} writes, \
             {} of them stale, {} losses; {}",
            run.seed,
            run.kind,
            history.grants.len(),
            history.refusals.len(),
            history.uncertain.len(),
            history.writes.len(),
            stale.count(),
            history.losses.len(),
            blows.join(", "),
        );
        Self {
            violations: violations.iter().map(ToString::to_string).collect(),
            lost_updates: lost.map(i64::abs).sum(),
            story,
        }
    }
}

#[expect(clippy::print_stderr, reason = "what a run of a storm came to")]
fn nothing_is_broken(kind: Kind) {
    if let Some(judgement) = Run::of(kind, None).judge() {
        let Judgement {
            violations,
            lost_updates,
            story,
        } = judgement;
        eprintln!("{story}");
        assert!(violations.is_empty(), "{violations:#?} {story}");
        assert_eq!(lost_updates, 0, "{story}");
    }
}

#[test]
fn a_storm_over_redis_breaks_nothing() {
    nothing_is_broken(Kind::Redis);
}

#[test]
fn a_storm_over_failovers_breaks_nothing() {
    nothing_is_broken(Kind::Pair);
}

#[test]
fn a_storm_over_a_cluster_breaks_nothing() {
    nothing_is_broken(Kind::Cluster);
}

#[test]
fn a_storm_over_a_redlock_breaks_nothing() {
    nothing_is_broken(Kind::Redlock);
}

#[test]
fn a_storm_over_postgres_breaks_nothing() {
    nothing_is_broken(Kind::Postgres);
}

/// The violations that a storm finds with a bug, and the updates lost by it.
fn finds(kind: Kind, bug: Planted) -> Option<(String, i64)> {
    let judgement = Run::of(kind, Some(bug)).judge()?;
    let said = judgement.violations.join("; ");
    Some((said, judgement.lost_updates))
}

#[test]
fn a_storm_finds_a_counter_without_a_gate() {
    if let Some((said, lost_updates)) = finds(Kind::Redis, Planted::NoGate) {
        assert!(lost_updates > 0 && said.contains("admitted"), "{said}");
    }
}

#[test]
fn a_storm_finds_tokens_of_a_bare_counter() {
    if let Some((said, _)) = finds(Kind::Redis, Planted::BareCounter) {
        assert!(
            said.contains("fell") || said.contains("two grants"),
            "{said}"
        );
    }
}

#[test]
fn a_storm_finds_nodes_that_vote_too_young() {
    if let Some((said, lost_updates)) = finds(Kind::Redlock, Planted::YoungVotes) {
        assert!(
            said.contains("two holders") || said.contains("no order"),
            "{said}"
        );
        assert_eq!(lost_updates, 0, "the gate decides");
    }
}
