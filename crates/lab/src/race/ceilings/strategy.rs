//! The rates of one strategy: holds of distinct seats of one event, their confirms, refusals of one hot
//! seat.

use std::sync::Arc;
use std::time::Duration;

use soldonce_core::{Auditor, OnHold};

use super::super::contender::{Contender, Sale};
use super::super::environment::Environment;
use super::super::outcome::Outcome;
use super::super::plan::{Hall, Want};
use super::super::strategies::Strategy;
use super::Rate;
use crate::kit::{Load, closed};
use crate::limits::{CEILING_BUYERS, CEILING_SEATS_PER_S, CEILING_WARMUP};

const SEATS_PER_ROW: u32 = 50;

/// One run of one strategy.
pub(super) struct StrategyRun {
    pub(super) holds: Rate,
    pub(super) confirms: Rate,
    /// Refusals of one seat that another buyer has.
    pub(super) refusals: Rate,
    /// Found by the auditor in the history.
    pub(super) violations: usize,
}

/// Measures a strategy in a hall of its own.
pub(super) async fn measure(
    environment: &Environment,
    strategy: &'static Strategy,
    (hall, seconds): (u32, u32),
) -> anyhow::Result<StrategyRun> {
    let contender = Contender::open(strategy, environment).await?;
    let seats = CEILING_SEATS_PER_S * seconds;
    let hall = Hall {
        id: format!("ceiling-{}-{hall}", strategy.name),
        number: i32::try_from(hall)?,
        rows: seats / SEATS_PER_ROW,
        seats_per_row: SEATS_PER_ROW,
    };
    let sale = contender.open_hall(&hall).await?;
    let load = |requests: u32| Load {
        tasks: CEILING_BUYERS,
        span: Duration::from_secs(u64::from(seconds)),
        requests: u64::from(requests),
    };
    // The first seats: connections and statements are ready then, and seat 0 is the hot one.
    hold(&sale, 0, load(CEILING_WARMUP)).await?;
    let (holds, held) = hold(&sale, CEILING_WARMUP, load(seats - CEILING_WARMUP)).await?;
    let refusals = refuse(&sale, seats, load(u32::MAX)).await?;
    let confirms = confirm(&sale, &held, load(u32::try_from(held.len())?)).await?;
    let violations = Auditor::check(&sale.history().await?).len();
    contender.close().await;
    Ok(StrategyRun {
        holds,
        confirms,
        refusals,
        violations,
    })
}

/// Builds the request of buyer `first + n` for this seat, or for the seat of that number.
fn want(first: u32, n: u64, seat: Option<u32>) -> Want {
    let buyer = u32::try_from(n).unwrap_or(u32::MAX).saturating_add(first);
    let seats = vec![seat.unwrap_or(buyer)];
    Want { buyer, seats }
}

/// Measures holds, each of the next seat. Textbook strategies sell at once and give no holds.
async fn hold(sale: &Sale, first: u32, load: Load) -> anyhow::Result<(Rate, Vec<OnHold>)> {
    let sale = sale.clone();
    let request = move |n| {
        let sale = sale.clone();
        async move {
            match sale.buy(&want(first, n, None)).await {
                Outcome::Won(hold) => Ok(hold),
                Outcome::Refused(why) => Err(why.to_owned()),
                Outcome::Failed(kind) => Err(kind),
            }
        }
    };
    let closed = closed(load, request).await?;
    let rate = Rate::of(&closed);
    Ok((rate, closed.answers.into_iter().flatten().collect()))
}

/// Measures refusals: each request comes from another buyer, and all want a seat that one has.
async fn refuse(sale: &Sale, first: u32, load: Load) -> anyhow::Result<Rate> {
    let sale = sale.clone();
    let request = move |n| {
        let sale = sale.clone();
        async move {
            match sale.buy(&want(first, n, Some(0))).await {
                Outcome::Refused(_) => Ok(()),
                Outcome::Won(_) => Err("sold twice".to_owned()),
                Outcome::Failed(kind) => Err(kind),
            }
        }
    };
    Ok(Rate::of(&closed(load, request).await?))
}

/// Measures confirms, each of the next of these holds.
async fn confirm(sale: &Sale, held: &[OnHold], load: Load) -> anyhow::Result<Rate> {
    let (sale, held): (Sale, Arc<[OnHold]>) = (sale.clone(), held.into());
    let request = move |n: u64| {
        let (sale, held) = (sale.clone(), Arc::clone(&held));
        async move {
            let next = usize::try_from(n).ok().and_then(|at| held.get(at).copied());
            sale.confirm(next.ok_or("no hold")?).await
        }
    };
    Ok(Rate::of(&closed(load, request).await?))
}
