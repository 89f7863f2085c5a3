//! `soldonce lab endure`: a steady load of keyed commands for minutes, and what the server takes of memory
//! meanwhile. What it takes after a sixth of the time it may exceed by a tenth.

mod cycle;
mod report;

use std::time::Duration;

use anyhow::Context;
use axum::http::Method;
use clap::{Args, ValueEnum};
use serde_json::json;
use soldonce_clock::{BootTime, Clock, SystemClock};

use self::cycle::{Odd, SEATS_PER_CONNECTION, makers};
use self::report::{EnduranceReport, Sample};
use super::ledger::Ledger;
use super::product::Product;
use crate::exit::Exit;
use crate::kit::{CpuTime, LoadReport, print_report, resident_bytes};
use crate::limits::{ENDURE_CONNECTIONS, ENDURE_SAMPLES, LOAD_RATE_MAX, LOAD_SECONDS_MAX};
use crate::load::{self, LoadPlan, Pace, Requests, Until};

const EVENT: &str = "endure";

/// Arguments of `soldonce lab endure`.
#[derive(Debug, Args)]
#[command(
    after_help = "Buyers hold a seat, meet another buyer who is refused, confirm, look at the map, cancel; and \
hold and release. Each command has a fresh Idempotency-Key and each buyer another name.

Exit codes: 0 every planned request was sent, every step had its answer and `verify` finds nothing, 1 otherwise. A \
goal that is missed is told and is no failure."
)]
pub(crate) struct EndureArgs {
    /// Seconds of load
    #[arg(long, default_value_t = 1_800)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=LOAD_SECONDS_MAX))]
    seconds: u64,
    /// Requests a second
    #[arg(long, default_value_t = 2_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=LOAD_RATE_MAX))]
    rate: u64,
    /// Where the server keeps its ledger
    #[arg(long, value_enum, default_value_t = LedgerKind::Folder)]
    ledger: LedgerKind,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A ledger of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LedgerKind {
    Folder,
    /// A private one
    Postgres,
}

/// Puts the load on a server of its own, and prints the report.
pub(crate) fn run(args: &EndureArgs) -> anyhow::Result<Exit> {
    let report = load::block_on(measure(args))?;
    let faults = report.violations.len();
    print_report(args.json, &report, || report.text(), faults)
}

async fn measure(args: &EndureArgs) -> anyhow::Result<EnduranceReport> {
    let (ledger, name) = match args.ledger {
        LedgerKind::Folder => (Ledger::folder(None)?, "a folder"),
        LedgerKind::Postgres => (Ledger::database().await?, "PostgreSQL"),
    };
    let endured = endure(args, Product::start(&ledger).await?).await?;
    let findings = ledger.violations().await?;
    Ok(EnduranceReport::new(name, endured, findings))
}

/// The report of the load, its unexpected answers, and samples of the server.
type LoadResult = (LoadReport, Odd, Vec<Sample>);

async fn endure(args: &EndureArgs, server: Product) -> anyhow::Result<LoadResult> {
    let setting = &server.setting;
    let body = json!({
        "id": EVENT, "name": "Endurance", "currency": "EUR", "prices": {"Standard": 4_500},
        "chart": {
            "format": "grid", "rows": ENDURE_CONNECTIONS, "seats_per_row": SEATS_PER_CONNECTION,
            "category": "Standard",
        },
    });
    let admin = &setting.admin;
    let made = admin.send(Method::POST, "/v1/events", Some(&body)).await?;
    made.into_success().context("no event could be made")?;
    let span = Duration::from_secs(args.seconds);
    let (pace, until) = (Pace::Open(args.rate), Until::Elapsed(span));
    let plan = LoadPlan::http(setting.address, ENDURE_CONNECTIONS, pace, until);
    let requests = Requests::new(setting.address, &setting.key);
    let odd = Odd::default();
    let makers = makers(&requests, EVENT, &odd);
    let (load, samples) = tokio::join!(load::run(plan, &makers), watch(server.served.id, span));
    server.served.stop().await?;
    Ok((load?, odd, samples?))
}

/// Samples the server's memory and CPU time at equal distances, until the time is over.
async fn watch(server: u32, span: Duration) -> anyhow::Result<Vec<Sample>> {
    let clock = SystemClock;
    let (began, step) = (clock.boot(), span / ENDURE_SAMPLES);
    let mut samples = Vec::new();
    let mut before: (BootTime, CpuTime) = (began, CpuTime::of(server)?);
    for n in 1..=ENDURE_SAMPLES {
        clock.sleep_until(began.plus(step * n)).await;
        let now = (clock.boot(), CpuTime::of(server)?);
        let took = now.0.since(before.0).as_millis().max(1);
        let cpu = now.1.since(before.1).as_millis() * 1_000 / took;
        samples.push(Sample {
            second: now.0.since(began).as_secs(),
            resident_kib: resident_bytes(server)? / 1_024,
            cpu_permille: u64::try_from(cpu)?,
        });
        before = now;
    }
    Ok(samples)
}
