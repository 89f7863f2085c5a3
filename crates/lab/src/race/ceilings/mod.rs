//! `soldonce lab race --ceilings`: the rates of each strategy with 64 buyers, compared with those of bare
//! PostgreSQL and Redis in the same run; and whether the goals are met.

mod raw;
mod report;
mod shields;
mod strategy;

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;

use super::RaceArgs;
use super::environment::Environment;
use super::strategies::Strategy;
use super::textbook::Guards;
use crate::kit::{Closed, Load, per_second};
use crate::limits::CEILING_BUYERS;

pub(super) use self::report::CeilingsReport;

/// More than there are strategies: each has a hall of its own in every run.
const STRATEGIES_MAX: u32 = 100;

/// The figures of one loop.
#[derive(Clone, Debug, Serialize)]
struct Rate {
    per_s: u64,
    p99_us: u64,
    /// Requests with another answer than the expected one, by kind.
    failed: BTreeMap<String, u64>,
}

impl Rate {
    fn of<T>(closed: &Closed<T>) -> Self {
        let done = u64::try_from(closed.answers.len()).unwrap_or(u64::MAX);
        Self {
            per_s: per_second(done, closed.took),
            p99_us: closed.latencies.figures().p99,
            failed: closed.failed.clone(),
        }
    }
}

struct Run {
    inserts: Rate,
    batches: Rate,
    scripts: Rate,
    refusals: shields::Refusals,
    strategies: Vec<(&'static str, strategy::StrategyRun)>,
}

/// Measures everything `args.runs` times, each in every run, so that a change on the machine affects
/// all.
pub(super) async fn measure(
    environment: &Environment,
    strategies: &[&'static Strategy],
    args: &RaceArgs,
    bar: &ProgressBar,
) -> anyhow::Result<CeilingsReport> {
    let load = Load {
        tasks: CEILING_BUYERS,
        span: Duration::from_secs(u64::from(args.seconds)),
        requests: u64::from(u32::MAX >> 1),
    };
    let pool = environment.pool_of(Guards::None)?;
    raw::make(&pool).await?;
    let redis = environment.redis_url()?;
    let mut runs = Vec::new();
    for run in 1..=args.runs {
        bar.set_message(format!("run {run}: bare PostgreSQL and Redis"));
        let inserts = raw::inserts(&pool, load, run).await?;
        let batches = raw::batches(&pool, load, run).await?;
        let scripts = raw::scripts(redis, load).await?;
        let refusals = shields::measure(environment, load, run).await?;
        bar.inc(1);
        let mut reached = Vec::new();
        for (place, &strategy) in (0..).zip(strategies) {
            bar.set_message(format!("run {run}: {}", strategy.name));
            let hall = run * STRATEGIES_MAX + place;
            let one = strategy::measure(environment, strategy, (hall, args.seconds)).await?;
            reached.push((strategy.name, one));
            bar.inc(1);
        }
        runs.push(Run {
            inserts,
            batches,
            scripts,
            refusals,
            strategies: reached,
        });
    }
    pool.close();
    let described = environment.described.clone();
    Ok(CeilingsReport::new(args, described, &runs))
}
