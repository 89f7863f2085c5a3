//! What one strategy reaches: distinct seats of one event, their confirms, one hot seat.

use std::sync::Arc;
use std::time::Duration;

use soldonce_core::{Auditor, OnHold};

use super::super::contender::{Outcome, Sale};
use super::super::environment::Environment;
use super::super::plan::{Hall, Want};
use super::super::strategies::Strategy;
use super::closed::{Load, Rate, closed};
use crate::limits::{CEILING_BUYERS, CEILING_SEATS_PER_S, CEILING_WARMUP};

const SEATS_PER_ROW: u32 = 50;

/// One run of one strategy.
pub(super) struct Reached {
    pub(super) holds: Rate,
    pub(super) confirms: Rate,
    /// Refusals of one seat that somebody has.
    pub(super) refusals: Rate,
    /// What the auditor found in the history.
    pub(super) violations: usize,
}

/// Measures a strategy in a hall of its own.
///
/// # Errors
/// When it does not start, or its history cannot be read.
pub(super) async fn measure(
    environment: &Environment,
    strategy: &'static Strategy,
    (hall, seconds): (u32, u32),
) -> anyhow::Result<Reached> {
    let contender = strategy.open(environment).await?;
    let seats = CEILING_SEATS_PER_S * seconds;
    let hall = Hall {
        id: format!("ceiling-{}-{hall}", strategy.name),
        number: i32::try_from(hall)?,
        rows: seats / SEATS_PER_ROW,
        seats_per_row: SEATS_PER_ROW,
    };
    let sale = contender.open_hall(&hall).await?;
    let load = |requests: u32| Load {
        buyers: CEILING_BUYERS,
        span: Duration::from_secs(u64::from(seconds)),
        requests: u64::from(requests),
    };
    // The first seats: connections and statements are ready then, and seat 0 is the hot one.
    closed(load(CEILING_WARMUP), hold_from(&sale, 0)).await?;
    let (holds, held) = closed(
        load(seats - CEILING_WARMUP),
        hold_from(&sale, CEILING_WARMUP),
    )
    .await?;
    let (refusals, _) = closed(load(u32::MAX), refuse(&sale, seats)).await?;
    // Textbook strategies sell at once: nothing is left to confirm.
    let held: Vec<OnHold> = held.into_iter().flatten().collect();
    let count = u32::try_from(held.len())?;
    let (confirms, _) = closed(load(count), confirm(&sale, held)).await?;
    let violations = Auditor::check(&sale.history().await?).len();
    contender.close().await;
    Ok(Reached {
        holds,
        confirms,
        refusals,
        violations,
    })
}

type Asked<T> = std::pin::Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

/// Each request wants the next seat.
fn hold_from(
    sale: &Arc<dyn Sale>,
    first: u32,
) -> impl Fn(u64) -> Asked<Option<OnHold>> + Clone + Send + 'static {
    let sale = Arc::clone(sale);
    move |n| {
        let sale = Arc::clone(&sale);
        Box::pin(async move {
            let seat = u32::try_from(n).unwrap_or(u32::MAX).saturating_add(first);
            let want = Want {
                buyer: seat,
                seats: vec![seat],
            };
            match sale.ask(&want).await {
                Outcome::Won(hold) => Ok(hold),
                Outcome::Refused(why) => Err(why.to_owned()),
                Outcome::Failed(kind) => Err(kind),
            }
        })
    }
}

/// Each request comes from another buyer, and all want the seat that somebody has.
fn refuse(sale: &Arc<dyn Sale>, seats: u32) -> impl Fn(u64) -> Asked<()> + Clone + Send + 'static {
    let sale = Arc::clone(sale);
    move |n| {
        let sale = Arc::clone(&sale);
        Box::pin(async move {
            let buyer = u32::try_from(n).unwrap_or(u32::MAX);
            let want = Want {
                buyer: buyer.saturating_add(seats),
                seats: vec![0],
            };
            match sale.ask(&want).await {
                Outcome::Refused(_) => Ok(()),
                Outcome::Won(_) => Err("sold twice".to_owned()),
                Outcome::Failed(kind) => Err(kind),
            }
        })
    }
}

/// Each request confirms the next of these holds.
fn confirm(
    sale: &Arc<dyn Sale>,
    held: Vec<OnHold>,
) -> impl Fn(u64) -> Asked<()> + Clone + Send + 'static {
    let (sale, held) = (Arc::clone(sale), Arc::new(held));
    move |n| {
        let (sale, held) = (Arc::clone(&sale), Arc::clone(&held));
        Box::pin(async move {
            let next = usize::try_from(n).ok().and_then(|at| held.get(at).copied());
            sale.confirm(next.ok_or("no hold")?).await
        })
    }
}
