//! The load generator: N keep-alive connections of HTTP/1.1 or of gRPC, each with one request in flight, in a
//! closed loop (the next request follows the answer) or an open one (requests come when they are
//! planned, and a late one counts from when it was planned). Every request sent is accounted for.
//!
//! Has its own client: a general one costs more per request than the server that it measures.

mod alarm;
mod answer;
mod calling;
mod calls;
mod connection;
mod plan;
mod request;
mod transport;
mod worker;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use soldonce_clock::{BootTime, Clock, SystemClock};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use self::calls::{HOLD, HoldRequest};
pub(crate) use self::plan::{LoadPlan, Pace, Until};
#[cfg(test)]
pub(crate) use self::request::Answer;
pub(crate) use self::request::{Maker, Makers, Requests, Turn, Wish, always, hold_id};
pub(crate) use self::transport::{Holds, Transport};

use self::connection::Connection;
use self::plan::Arrivals;
use self::worker::Worker;
use crate::kit::{LoadReport, Tally};
use crate::limits::LOAD_OVERTIME_MS_MAX;

/// Puts `plan`'s load on a server and reports. All connections are open before the first request.
///
/// # Cancel safety
/// Dropping the future closes all connections; requests in flight may have happened.
pub(crate) async fn run(plan: LoadPlan, makers: &Makers) -> anyhow::Result<LoadReport> {
    let clock = SystemClock;
    let mut connections = Vec::new();
    for _ in 0..plan.connections {
        let connection = Connection::open(plan.transport, plan.address).await;
        connections
            .push(connection.with_context(|| format!("cannot connect to {}", plan.address))?);
    }
    let overtime = CancellationToken::new();
    let started = clock.boot();
    let arrivals = Arc::new(Arrivals::new(plan, started));
    let mut workers = JoinSet::new();
    for (number, connection) in connections.into_iter().enumerate() {
        let worker = Worker::new(connection, makers(number), Arc::clone(&arrivals))?;
        workers.spawn(worker.run(overtime.clone()));
    }
    let end = started.plus(plan.until.longest());
    let cut_at = end.plus_ms(LOAD_OVERTIME_MS_MAX);
    let total = gather(workers, &clock, cut_at, &overtime).await?;
    Ok(total.report(clock.boot().since(started), arrivals.missed()))
}

/// Joins the workers and adds up their counts. At `cut_at` it ends their waits.
async fn gather(
    mut workers: JoinSet<Tally>,
    clock: &SystemClock,
    cut_at: BootTime,
    overtime: &CancellationToken,
) -> anyhow::Result<Tally> {
    let mut total = Tally::default();
    loop {
        tokio::select! {
            tally = workers.join_next() => match tally {
                Some(tally) => total.add(&tally.context("a connection of the load panicked")?),
                None => return Ok(total),
            },
            () = clock.sleep_until(cut_at), if !overtime.is_cancelled() => overtime.cancel(),
        }
    }
}

/// Runs work on this thread alone: on few cores a second one would only take from the server.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the load generator")?;
    runtime.block_on(work)
}

async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests;
