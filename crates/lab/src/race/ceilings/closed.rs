//! A closed loop in this process: so many buyers, each asking again as soon as it is answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use hdrhistogram::Histogram;
use serde::Serialize;
use soldonce_clock::{BootTime, Clock, SystemClock};
use tokio::task::JoinSet;
use tokio::task::coop::consume_budget;

use crate::limits::{LATENCY_DIGITS, LATENCY_US_MAX};

/// How long a loop goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) buyers: u32,
    pub(super) span: Duration,
    /// Ends earlier when so many were asked.
    pub(super) requests: u64,
}

/// What came of a loop.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Rate {
    /// Requests that were answered as they should be.
    pub(super) done: u64,
    pub(super) per_s: u64,
    pub(super) p99_us: u64,
    /// The others, by kind.
    pub(super) failed: BTreeMap<String, u64>,
}

/// What one buyer counted.
struct Count<T> {
    answers: Vec<T>,
    latencies_us: Histogram<u32>,
    failed: BTreeMap<String, u64>,
}

/// Runs `ask` with numbers from 0 on; gives the rate, and every good answer.
///
/// # Errors
/// When a buyer panics.
pub(super) async fn closed<T, F>(
    load: Load,
    ask: impl Fn(u64) -> F + Clone + Send + 'static,
) -> anyhow::Result<(Rate, Vec<T>)>
where
    T: Send + 'static,
    F: Future<Output = Result<T, String>> + Send + 'static,
{
    let next = Arc::new(AtomicU64::new(0));
    let began = SystemClock.boot();
    let until = began.plus(load.span);
    let mut buyers = JoinSet::new();
    for _ in 0..load.buyers {
        buyers.spawn(one_buyer(
            Arc::clone(&next),
            (load.requests, until),
            ask.clone(),
        ));
    }
    let mut rate = Rate::default();
    let (mut answers, mut latencies_us) = (Vec::new(), histogram());
    while let Some(count) = buyers.join_next().await {
        let count = count.context("a buyer panicked")?;
        answers.extend(count.answers);
        latencies_us
            .add(&count.latencies_us)
            .context("all histograms here are alike")?;
        for (kind, count) in count.failed {
            *rate.failed.entry(kind).or_default() += count;
        }
    }
    let took = SystemClock.boot().since(began).as_nanos().max(1);
    rate.done = u64::try_from(answers.len())?;
    rate.per_s = u64::try_from(u128::from(rate.done) * 1_000_000_000 / took)?;
    rate.p99_us = latencies_us.value_at_quantile(0.99);
    Ok((rate, answers))
}

async fn one_buyer<T, F>(
    next: Arc<AtomicU64>,
    (requests, until): (u64, BootTime),
    ask: impl Fn(u64) -> F,
) -> Count<T>
where
    F: Future<Output = Result<T, String>>,
{
    let mut count = Count {
        answers: Vec::new(),
        latencies_us: histogram(),
        failed: BTreeMap::new(),
    };
    loop {
        let began = SystemClock.boot();
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= requests || began >= until {
            return count;
        }
        match ask(n).await {
            Ok(answer) => count.answers.push(answer),
            Err(kind) => *count.failed.entry(kind).or_default() += 1,
        }
        // What is answered from memory never waits: the other buyers of this thread would have no turn.
        consume_budget().await;
        let took = SystemClock.boot().since(began).as_micros();
        let micros = u64::try_from(took).unwrap_or(u64::MAX);
        count.latencies_us.saturating_record(micros);
    }
}

fn histogram() -> Histogram<u32> {
    Histogram::new_with_max(LATENCY_US_MAX, LATENCY_DIGITS)
        .expect("the bounds of the histogram are legal constants")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_request_is_asked_once_and_counted_once() {
        let load = Load {
            buyers: 8,
            span: Duration::from_mins(1),
            requests: 1_000,
        };
        let ask = |n: u64| async move {
            tokio::task::yield_now().await;
            (n % 10 != 7).then_some(n).ok_or("seven".to_owned())
        };
        let (rate, mut answers) = closed(load, ask).await.unwrap();
        answers.sort_unstable();
        let expected: Vec<u64> = (0..1_000).filter(|n| n % 10 != 7).collect();
        assert_eq!(answers, expected);
        assert_eq!((rate.done, rate.failed["seven"]), (900, 100));
        assert!(rate.per_s > 0);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn buyers_whose_answers_are_there_already_leave_turns_to_each_other() {
        let load = Load {
            buyers: 8,
            span: Duration::from_mins(1),
            requests: 10_000,
        };
        let ask = |_| async { Ok(tokio::task::try_id()) };
        let (_, mut buyers) = closed(load, ask).await.unwrap();
        buyers.dedup();
        assert!(buyers.len() >= 8, "{} had a turn", buyers.len());
    }
}
