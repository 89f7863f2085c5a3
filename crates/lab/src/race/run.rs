//! Runs the matrix: strategy by strategy, cell by cell, round by round. In each round all buyers meet
//! at a barrier and send their requests at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use soldonce_clock::{BootTime, Clock, SystemClock};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::contender::{self, Contender, Sale};
use super::environment::Environment;
use super::judge::{Winners, judge};
use super::outcome::Outcome;
use super::plan::{Cell, Hall, Want};
use super::report::{CellReport, StrategyReport};
use super::strategies::Strategy;
use super::tally::Tally;
use super::textbook::{Method, Scene, stop_the_holder};
use crate::limits::RACE_CELL_MS_MAX;

/// Races every strategy over every cell.
pub(super) async fn race_all(
    environment: &Environment,
    strategies: &[&'static Strategy],
    (cells, rounds): (&[Cell], u32),
    bar: &ProgressBar,
) -> anyhow::Result<Vec<StrategyReport>> {
    let mut halls = 0;
    let mut reports = Vec::new();
    for &strategy in strategies {
        let name = strategy.name;
        let contender = Contender::open(strategy, environment).await?;
        let mut raced: Vec<CellReport> = Vec::new();
        for &cell in cells {
            let (shape, buyers) = (cell.shape_name(), cell.buyers);
            bar.set_message(format!("{name}: {shape}, {buyers} buyers"));
            halls += 1;
            let hall = Hall {
                id: format!("{name}-{halls}"),
                number: halls,
                rows: rounds + 1,
                seats_per_row: cell.seats_per_row(),
            };
            let one = race(&contender, cell, &hall, rounds).await;
            raced.push(one.with_context(|| format!("strategy {name}"))?);
            bar.inc(1);
        }
        contender.close().await;
        reports.push(StrategyReport {
            name,
            promise: strategy.promise,
            mechanism: strategy.mechanism,
            why: strategy.why,
            statements: contender.statements(),
            double_sales: raced.iter().map(|cell| cell.judged.double_sales).sum(),
            cells: raced,
        });
    }
    Ok(reports)
}

/// Stops the holder of each strategy that has one.
pub(super) async fn stop_holders(
    environment: &Environment,
    strategies: &[&'static Strategy],
) -> anyhow::Result<Vec<Scene>> {
    let mut scenes = Vec::new();
    for (number, strategy) in (1..).zip(strategies) {
        if !matches!(strategy.method, Method::Lease | Method::Redlock) {
            continue;
        }
        let textbook = contender::textbook(strategy, environment).await?;
        let hall = Hall {
            id: format!("{}-stopped", strategy.name),
            // The cells have those above.
            number: -number,
            rows: 1,
            seats_per_row: 1,
        };
        let name = (strategy.name, strategy.guards);
        scenes.push(stop_the_holder(name, &textbook, &hall).await?);
    }
    Ok(scenes)
}

/// Warms up, races, confirms the holds, and judges all of it, the warm-up too.
async fn race(
    contender: &Contender,
    cell: Cell,
    hall: &Hall,
    rounds: u32,
) -> anyhow::Result<CellReport> {
    let sale = contender.open_hall(hall).await?;
    let mut winners = Winners::default();
    // So that connections and statements are ready. In the row behind those that count.
    let warm_up = run_round(&sale, cell.warm_up(rounds)).await?;
    winners.warm_up = confirm(&sale, warm_up, &mut winners.unconfirmed).await;
    let (mut tally, mut raced) = (Tally::default(), 0);
    let until = SystemClock.boot().plus_ms(RACE_CELL_MS_MAX);
    while raced < rounds && (raced == 0 || SystemClock.boot() < until) {
        let round = run_round(&sale, cell.wants(raced)).await?;
        for (_, outcome, took) in &round.answers {
            tally.count(outcome, *took);
        }
        tally.raced(round.took);
        let confirmed = confirm(&sale, round, &mut winners.unconfirmed).await;
        winners.rounds.extend(confirmed);
        raced += 1;
    }
    Ok(CellReport {
        seats: cell.seats,
        shape: cell.shape,
        shape_name: cell.shape_name(),
        buyers: cell.buyers,
        rounds: raced,
        figures: tally.figures(),
        judged: judge(&winners, &sale.history().await?),
    })
}

struct Round {
    answers: Vec<(Want, Outcome, Duration)>,
    took: Duration,
}

/// Lets all buyers meet at a barrier, and send their requests at once.
async fn run_round(sale: &Sale, wants: Vec<Want>) -> anyhow::Result<Round> {
    let barrier = Arc::new(Barrier::new(wants.len()));
    let mut buyers = JoinSet::new();
    for want in wants {
        let (sale, barrier) = (sale.clone(), Arc::clone(&barrier));
        buyers.spawn(async move {
            barrier.wait().await;
            let began = SystemClock.boot();
            let outcome = sale.buy(&want).await;
            (want, outcome, began, SystemClock.boot())
        });
    }
    let mut answers = Vec::with_capacity(buyers.len());
    let mut span: Option<(BootTime, BootTime)> = None;
    while let Some(answer) = buyers.join_next().await {
        let (want, outcome, began, ended) = answer.context("a buyer panicked")?;
        let (first, last) = span.unwrap_or((began, ended));
        span = Some((first.min(began), last.max(ended)));
        answers.push((want, outcome, ended.since(began)));
    }
    let took = span.map_or(Duration::ZERO, |(first, last)| last.since(first));
    Ok(Round { answers, took })
}

/// Confirms the holds of a round, and returns its winners: also those who could not confirm, as they were promised
/// their seats.
async fn confirm(sale: &Sale, round: Round, unconfirmed: &mut BTreeMap<String, u64>) -> Vec<Want> {
    let (mut winners, mut confirms) = (Vec::new(), JoinSet::new());
    for (want, outcome, _) in round.answers {
        let Outcome::Won(hold) = outcome else {
            continue;
        };
        winners.push(want);
        if let Some(hold) = hold {
            let sale = sale.clone();
            confirms.spawn(async move { sale.confirm(hold).await });
        }
    }
    let ended = confirms.join_all().await;
    for why in ended.into_iter().filter_map(Result::err) {
        *unconfirmed.entry(why).or_default() += 1;
    }
    winners
}
