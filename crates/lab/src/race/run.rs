//! Runs the matrix: strategy by strategy, cell by cell, round by round. In each round all buyers meet
//! at a barrier and ask at once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use soldonce_clock::{BootTime, Clock, SystemClock};
use soldonce_core::OnHold;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::contender::{Contender, Outcome, Sale};
use super::environment::Environment;
use super::judge::{Judged, Winners, judge};
use super::plan::{Cell, Hall, Want};
use super::strategies::Strategy;
use super::tally::{Figures, Tally};
use super::textbook::{Scene, stop_the_holder};
use crate::limits::RACE_CELL_MS_MAX;

/// One cell of one strategy, raced and judged.
#[derive(Clone, Debug)]
pub(super) struct Raced {
    pub(super) cell: Cell,
    /// Rounds that were raced: fewer than asked for if they took too long.
    pub(super) rounds: u32,
    pub(super) figures: Figures,
    pub(super) judged: Judged,
}

/// Every cell of one strategy.
pub(super) struct Performance {
    pub(super) strategy: &'static Strategy,
    /// What it sent for each buyer.
    pub(super) statements: &'static [&'static str],
    pub(super) cells: Vec<Raced>,
}

/// Races every strategy over every cell.
///
/// # Errors
/// When a strategy does not start, or a history cannot be read.
pub(super) async fn race_all(
    environment: &Environment,
    strategies: &[&'static Strategy],
    (cells, rounds): (&[Cell], u32),
    bar: &ProgressBar,
) -> anyhow::Result<Vec<Performance>> {
    let mut halls = 0;
    let mut performances = Vec::new();
    for &strategy in strategies {
        let contender = strategy.open(environment).await?;
        let mut raced = Vec::new();
        for &cell in cells {
            bar.set_message(format!(
                "{}: {}, {} buyers",
                strategy.name,
                cell.shape_name(),
                cell.buyers
            ));
            halls += 1;
            let track = Track {
                contender: &*contender,
                cell,
                hall: hall(strategy, cell, (halls, rounds)),
            };
            let one = track.race(rounds).await;
            raced.push(one.with_context(|| format!("strategy {}", strategy.name))?);
            bar.inc(1);
        }
        contender.close().await;
        performances.push(Performance {
            strategy,
            statements: contender.statements(),
            cells: raced,
        });
    }
    Ok(performances)
}

/// Stops the holder of each strategy that has one.
///
/// # Errors
/// When its servers do not do their part.
pub(super) async fn stop_holders(
    environment: &Environment,
    strategies: &[&'static Strategy],
) -> anyhow::Result<Vec<Scene>> {
    let mut scenes = Vec::new();
    for (number, strategy) in (1..).zip(strategies) {
        let Some(way) = strategy.stoppable(environment).await? else {
            continue;
        };
        let hall = Hall {
            id: format!("{}-stopped", strategy.name),
            // The cells have those above.
            number: -number,
            rows: 1,
            seats_per_row: 1,
        };
        let tables = (&environment.pool_of(strategy.guards)?, strategy.guards);
        scenes.push(stop_the_holder((strategy.name, &*way), tables, &hall).await?);
    }
    Ok(scenes)
}

fn hall(strategy: &Strategy, cell: Cell, (number, rounds): (i32, u32)) -> Hall {
    Hall {
        id: format!("{}-{number}", strategy.name),
        number,
        rows: rounds + 1,
        seats_per_row: cell.seats_per_row(),
    }
}

/// One cell of one strategy, and where it is raced.
struct Track<'a> {
    contender: &'a dyn Contender,
    cell: Cell,
    hall: Hall,
}

/// How one round went.
struct Round {
    answers: Vec<(Want, Outcome, Duration)>,
    took: Duration,
}

impl Track<'_> {
    /// Warms up, races, confirms what was won, and judges all of it, the warm-up too.
    async fn race(self, rounds: u32) -> anyhow::Result<Raced> {
        let sale = self.contender.open_hall(&self.hall).await?;
        let mut winners = Winners::default();
        // So that connections and statements are ready. In the row behind those that count.
        let warm_up = run_round(&sale, self.cell.warm_up(rounds)).await?;
        sell(&sale, warm_up, &mut winners.warm_up, &mut Tally::new()).await;
        let (mut tally, mut raced) = (Tally::new(), 0);
        let until = SystemClock
            .boot()
            .plus(Duration::from_millis(RACE_CELL_MS_MAX));
        while raced < rounds && (raced == 0 || SystemClock.boot() < until) {
            let round = run_round(&sale, self.cell.wants(raced)).await?;
            for (_, outcome, took) in &round.answers {
                tally.count(outcome, *took);
            }
            tally.raced(round.took);
            sell(&sale, round, &mut winners.rounds, &mut tally).await;
            raced += 1;
        }
        let history = sale.history().await?;
        Ok(Raced {
            cell: self.cell,
            rounds: raced,
            figures: tally.figures(),
            judged: judge(&winners, &history),
        })
    }
}

/// All buyers meet, and ask at once.
async fn run_round(sale: &Arc<dyn Sale>, wants: Vec<Want>) -> anyhow::Result<Round> {
    let barrier = Arc::new(Barrier::new(wants.len()));
    let mut buyers = JoinSet::new();
    for want in wants {
        let (sale, barrier) = (Arc::clone(sale), Arc::clone(&barrier));
        buyers.spawn(async move {
            barrier.wait().await;
            let began = SystemClock.boot();
            let outcome = sale.ask(&want).await;
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

/// Turns what was won into sales. A winner who cannot confirm is counted as an error.
async fn sell(sale: &Arc<dyn Sale>, round: Round, winners: &mut Vec<Want>, tally: &mut Tally) {
    let mut confirms = JoinSet::new();
    for (want, outcome, _) in round.answers {
        match outcome {
            Outcome::Won(Some(hold)) => {
                confirms.spawn(confirm(Arc::clone(sale), want, hold));
            }
            Outcome::Won(None) => winners.push(want),
            Outcome::Refused(_) | Outcome::Failed(_) => {}
        }
    }
    for confirmed in confirms.join_all().await {
        match confirmed {
            Ok(want) => winners.push(want),
            Err(why) => tally.recount_winner(why),
        }
    }
}

async fn confirm(sale: Arc<dyn Sale>, want: Want, hold: OnHold) -> Result<Want, String> {
    sale.confirm(hold).await.map(|()| want)
}
