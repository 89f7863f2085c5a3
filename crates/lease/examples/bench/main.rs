//! Measures leases on one Redis beside their ceilings and a peer, all in one run:
//!
//! - **bare pair**: `SET NX PX` and a compare-and-delete, sent by redis-rs as they are: the least a
//!   lock with an owner can cost, without tokens, caps, queues or renewal;
//! - **script pair**: this crate's own acquire and release scripts, sent by redis-rs as they are;
//! - **script pair, by a thread**: the same over a connection that another thread reads and writes: the
//!   most that any library can reach whose leases live while the caller's executor does not run;
//! - **soldonce-lease**: acquire and release through [`soldonce_lease::Leases`];
//! - **rslock**: its `lock` and `unlock`.
//!
//! `cargo run --release -p soldonce-lease --features redis --example bench -- [--url redis://..]
//! [--seconds 2] [--runs 3]`
//!
//! Without `--url` it starts a private Redis and stops it again. With one it writes keys below
//! `sl:{bench` and `bench:`, which end by themselves. Compare only what one run prints: the machine's
//! own speed drifts.
#![expect(clippy::print_stdout, reason = "it reports to a person")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot go on must stop"
)]

mod groups;
mod hand_over;
mod pairs;
mod peers;
mod table;

use std::error::Error;
use std::time::Duration;

use soldonce_testkit::redis::Redis;

/// What to measure, and for how long.
#[derive(Clone)]
struct Setting {
    url: String,
    span: Duration,
    runs: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut setting = Setting {
        url: String::new(),
        span: Duration::from_secs(2),
        runs: 3,
    };
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        let value = args
            .next()
            .ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--url" => setting.url = value,
            "--seconds" => setting.span = Duration::from_secs(value.parse()?),
            "--runs" => setting.runs = value.parse()?,
            _ => return Err(format!("no option {option}").into()),
        }
    }
    // Started from the main thread, whose end also ends the server.
    let server = if setting.url.is_empty() {
        Some(Redis::start()?)
    } else {
        None
    };
    if let Some(server) = &server {
        setting.url = server.url();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure(&setting))?;
    drop(server);
    Ok(())
}

async fn measure(setting: &Setting) -> Result<(), Box<dyn Error>> {
    println!("{}", pairs::measure(setting).await?);
    println!("{}", hand_over::measure(setting).await?);
    println!("{}", groups::measure(setting).await?);
    Ok(())
}
