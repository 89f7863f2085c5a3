//! A closed loop in this process, without HTTP: so many tasks, each sending its next request as soon as
//! the last one is answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use soldonce_clock::{BootTime, Clock, SystemClock};
use tokio::task::JoinSet;
use tokio::task::coop::consume_budget;

use super::stats::{Latencies, add_counts};

/// The tasks of a loop, and when it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) tasks: u32,
    pub(crate) span: Duration,
    /// Ends earlier after so many requests.
    pub(crate) requests: u64,
}

/// A finished loop.
#[derive(Debug)]
pub(crate) struct Closed<T> {
    pub(crate) answers: Vec<T>,
    pub(crate) latencies: Latencies,
    /// The requests that failed, by kind.
    pub(crate) failed: BTreeMap<String, u64>,
    pub(crate) took: Duration,
}

/// Runs `request` with numbers from 0 on, in `load.tasks` tasks.
pub(crate) async fn closed<T, F>(
    load: Load,
    request: impl Fn(u64) -> F + Clone + Send + 'static,
) -> anyhow::Result<Closed<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, String>> + Send + 'static,
{
    let next = Arc::new(AtomicU64::new(0));
    let began = SystemClock.boot();
    let bounds = (load.requests, began.plus(load.span));
    let mut tasks = JoinSet::new();
    for _ in 0..load.tasks {
        tasks.spawn(one_task(Arc::clone(&next), bounds, request.clone()));
    }
    let mut total = empty();
    while let Some(one) = tasks.join_next().await {
        let one = one.context("a task of the load panicked")?;
        total.answers.extend(one.answers);
        total.latencies.add(&one.latencies);
        total.failed = add_counts([&total.failed, &one.failed]);
    }
    total.took = SystemClock.boot().since(began);
    Ok(total)
}

async fn one_task<T, F>(
    next: Arc<AtomicU64>,
    (requests, until): (u64, BootTime),
    request: impl Fn(u64) -> F,
) -> Closed<T>
where
    F: Future<Output = Result<T, String>>,
{
    let mut count = empty();
    loop {
        let began = SystemClock.boot();
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= requests || began >= until {
            return count;
        }
        match request(n).await {
            Ok(answer) => count.answers.push(answer),
            Err(kind) => *count.failed.entry(kind).or_default() += 1,
        }
        // An answer from memory never waits: the other tasks of this thread would not run.
        consume_budget().await;
        count.latencies.record(SystemClock.boot().since(began));
    }
}

fn empty<T>() -> Closed<T> {
    Closed {
        answers: Vec::new(),
        latencies: Latencies::default(),
        failed: BTreeMap::new(),
        took: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load {
        tasks: 8,
        span: Duration::from_mins(1),
        requests: 1_000,
    };

    #[tokio::test]
    async fn every_request_is_sent_once_and_counted_once() {
        let request = |n: u64| async move {
            tokio::task::yield_now().await;
            (n % 10 != 7).then_some(n).ok_or("seven".to_owned())
        };
        let mut closed = closed(LOAD, request).await.unwrap();
        closed.answers.sort_unstable();
        let expected: Vec<u64> = (0..1_000).filter(|n| n % 10 != 7).collect();
        assert_eq!(closed.answers, expected);
        assert_eq!(
            (closed.failed["seven"], closed.latencies.count()),
            (100, 1_000)
        );
        assert!(closed.took > Duration::ZERO);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn tasks_whose_answers_are_in_memory_yield_to_each_other() {
        let load = Load {
            requests: 10_000,
            ..LOAD
        };
        let request = |_| async { Ok(tokio::task::try_id()) };
        let mut tasks = closed(load, request).await.unwrap().answers;
        tasks.dedup();
        assert!(tasks.len() >= 8, "{} tasks ran", tasks.len());
    }
}
