//! A run from its options to its exit code.

use std::os::fd::AsRawFd;
use std::time::Duration;

use soldonce_clock::{Clock, SystemClock};
use soldonce_lease::{Lease, Leases};

use super::args::RunArgs;
use super::backend;
use super::child::{Child, Pipe, status_pipe};
use super::outcome::Outcome;
use super::report::{self, HoldTime};
use super::signals::{SignalSource, Signals};
use super::status::{Status, variables};
use super::supervise::{Ended, Supervisor, Times};
use crate::block_on;
use crate::exit::Exit;

/// Longest wait for releases that are under way at the end.
const DRAIN: Duration = Duration::from_secs(1);

/// Runs CMD under a lease.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    // First of all, so that its number has one digit: some shells know no others.
    let pipe = status_pipe()?;
    let attempted = match args.contradiction() {
        Some(why) => Err(Outcome::Usage(why)),
        // One thread: CMD dies with the thread that starts it, which must be this one.
        None => block_on(attempt(args, pipe))?,
    };
    let (outcome, hold) = attempted.unwrap_or_else(|outcome| (outcome, HoldTime::default()));
    if let Some(message) = outcome.message() {
        eprintln!("soldonce: {}: {message}", args.name);
    }
    if let Some(file) = &args.report
        && let Err(error) = report::write(file, args.name.as_str(), &outcome, &hold)
    {
        eprintln!("soldonce: {error:#}");
    }
    Ok(Exit::Code(outcome.code()))
}

/// Runs CMD if the lease is granted. Fails with why it was not.
async fn attempt(args: &RunArgs, pipe: Pipe) -> Result<(Outcome, HoldTime), Outcome> {
    let failed = |error: std::io::Error| Outcome::Unavailable(error.to_string());
    let mut signals = Signals::listen().map_err(failed)?;
    let locks = connect(args, &mut signals).await?;
    let done = match acquire(args, &locks, &mut signals).await {
        Ok(lease) => Ok(hold(args, lease, &mut signals, pipe).await),
        Err(outcome) => Err(outcome),
    };
    locks.shutdown(DRAIN).await;
    done
}

async fn connect(args: &RunArgs, signals: &mut Signals) -> Result<Leases, Outcome> {
    let tell = |remark: String| eprintln!("soldonce: {}: {remark}", args.name);
    tokio::select! {
        biased;
        signal = signals.next() => Err(interrupted(signal)),
        locks = backend::connect(&args.backend, tell) => locks.map_err(Outcome::Unavailable),
    }
}

/// Acquires the lease. A signal ends the wait and leaves no request behind.
async fn acquire(args: &RunArgs, locks: &Leases, signals: &mut Signals) -> Result<Lease, Outcome> {
    let mut request = locks.lease(args.name.clone()).ttl(args.ttl);
    request = request.max_lifetime(args.cap);
    if args.fair {
        request = request.fair();
    }
    for (key, value) in &args.meta {
        request = request.meta(key, value);
    }
    tokio::select! {
        biased;
        signal = signals.next() => Err(interrupted(signal)),
        asked = request.acquire_or_refusal(args.wait) => match asked {
            Ok(Ok(lease)) => Ok(lease),
            Ok(Err(refusal)) => Err(Outcome::refused(&refusal, args.wait)),
            Err(error) => Err(Outcome::of(&error, &args.backend)),
        },
    }
}

fn interrupted(signal: rustix::process::Signal) -> Outcome {
    Outcome::Interrupted(u8::try_from(signal.as_raw()).unwrap_or_default())
}

/// Runs CMD, keeps the lease as long as was asked for, and gives it back.
async fn hold(
    args: &RunArgs,
    lease: Lease,
    signals: &mut Signals,
    pipe: Pipe,
) -> (Outcome, HoldTime) {
    let clock = SystemClock;
    let began = clock.boot();
    let outcome = match work(args, &lease, signals, pipe).await {
        Ok(Ended::Alone(code)) => Outcome::Done(code),
        Ok(Ended::ForLease(why)) => Outcome::Lost(why),
        Err(error) => Outcome::Unavailable(format!("{error:#}")),
    };
    signals.forget_the_command();
    let token = lease.token_for_logs().map(|token| token.to_string());
    let keep = matches!(outcome, Outcome::Done(_)).then(|| began.plus(args.at_least));
    let is_interrupted = tokio::select! {
        biased;
        () = clock.sleep_until(keep.unwrap_or(began)) => false,
        _ = lease.lost() => false,
        _ = signals.next() => true,
    };
    if is_interrupted {
        // To release it now would break what --at-least promises: its ttl ends it.
        drop(lease.detach());
    } else if lease.release().await.is_err() {
        let name = &args.name;
        eprintln!("soldonce: {name}: the release was not confirmed, the ttl ends it");
    }
    let held = clock.boot().since(began);
    (outcome, HoldTime { token, held })
}

/// Runs CMD. When this returns, CMD and what it left in its group are gone.
async fn work(
    args: &RunArgs,
    lease: &Lease,
    signals: &mut Signals,
    (writer, reader): Pipe,
) -> anyhow::Result<Ended> {
    signals.listen_for_the_command()?;
    let clock = SystemClock;
    let known = (args.name.as_str(), args.cap, reader.as_raw_fd());
    let mut child = Child::start(&args.command, variables(&clock, lease, known), &reader)?;
    // Only CMD has the reading end now: its end is seen here.
    drop(reader);
    let mut supervisor = Supervisor {
        clock: &clock,
        lease: lease.handle(),
        child: &mut child,
        signals,
        status: Status::to(writer),
        times: Times {
            grace: args.grace,
            margin: args.margin(),
            look: args.ttl / 6,
        },
    };
    Ok(supervisor.run().await)
}
