//! `soldonce lab race --ceilings`: what each strategy reaches with 64 buyers, beside what PostgreSQL
//! and Redis do bare, in the same run; and whether the goals are met.

mod closed;
mod raw;
mod report;
mod shields;
mod strategy;

use std::time::Duration;

use indicatif::ProgressBar;

use super::RaceArgs;
use super::environment::Environment;
use super::strategies::Strategy;
use crate::limits::CEILING_BUYERS;

use self::closed::{Load, Rate};

pub(super) use self::report::CeilingsReport;

/// More than there are strategies: each has a hall of its own in every run.
const STRATEGIES_MAX: u32 = 100;

/// One run of everything.
struct Run {
    inserts: Rate,
    batches: Rate,
    scripts: Rate,
    refusals: shields::Refusals,
    strategies: Vec<(&'static str, strategy::Reached)>,
}

/// What a ceiling counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Stored,
    Refused,
}

type RawRate = (&'static str, &'static str, Counted, fn(&Run) -> &Rate);

/// The ceilings, with what each of them is.
fn raw_rates() -> [RawRate; 6] {
    [
        (
            "bare insert",
            "one narrow row, one commit, by as many connections",
            Counted::Stored,
            |run| &run.inserts,
        ),
        (
            "bare batch",
            "the rows of a hold without guards or rules, as many holds a commit as wait",
            Counted::Stored,
            |run| &run.batches,
        ),
        (
            "bare script",
            "one script with SET NX PX on Redis, over one connection",
            Counted::Stored,
            |run| &run.scripts,
        ),
        (
            "engine, embedded",
            "a taken seat asked of the engine on SQLite, with its shield in process",
            Counted::Refused,
            |run| &run.refusals.embedded,
        ),
        (
            "engine, shared",
            "the same on PostgreSQL behind the Redis shield; another server made the hold",
            Counted::Refused,
            |run| &run.refusals.shared,
        ),
        (
            "shield alone",
            "the Redis shield asked about a taken seat, over one connection",
            Counted::Refused,
            |run| &run.refusals.script,
        ),
    ]
}

/// Measures everything `args.runs` times, each in every run, so that what changes on the machine
/// changes for all.
///
/// # Errors
/// When a strategy does not start.
pub(super) async fn measure(
    environment: &Environment,
    strategies: &[&'static Strategy],
    args: &RaceArgs,
    bar: &ProgressBar,
) -> anyhow::Result<CeilingsReport> {
    let span = Duration::from_secs(u64::from(args.seconds));
    let load = Load {
        buyers: CEILING_BUYERS,
        span,
        requests: u64::from(u32::MAX >> 1),
    };
    let pool = environment.pool()?;
    raw::make(&pool).await?;
    let redis = environment.redis_url()?;
    let mut runs = Vec::new();
    for run in 1..=args.runs {
        bar.set_message(format!("run {run}: bare PostgreSQL and Redis"));
        let (inserts, batches) = (
            raw::inserts(&pool, load, run).await?,
            raw::batches(&pool, load, run).await?,
        );
        let scripts = raw::scripts(&redis, load).await?;
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
    Ok(CeilingsReport::new(
        args,
        environment.described.clone(),
        &runs,
    ))
}
