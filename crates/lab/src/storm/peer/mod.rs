//! `soldonce lab storm --peer`: the same storm at the product and at a server written as articles on
//! this subject advise, by turns in every run, on the same services; and whether the goals are met.

mod contender;
mod report;
mod services;
mod table;

use std::path::Path;

use anyhow::Context;
use indicatif::ProgressBar;

use self::contender::{ALL, Contender};
use self::report::{Measured, PeerReport};
use self::services::Services;
use super::{Size, StormArgs, send_storm};
use crate::bench::{Cores, RunFolder, Served, admin_key};
use crate::client::Client;
use crate::exit::Exit;
use crate::limits::STORM_WARMUP_SECONDS_MAX;
use crate::output::{print, print_json};
use crate::race::{progress_bar, unless_signalled};

/// Every contender's storm, in the order of the turns.
type Run = Vec<(Contender, Measured)>;

/// Runs all storms and prints the report. Refused if anybody gave a seat twice.
///
/// # Errors
/// Whatever keeps a server from starting.
pub(super) fn run(args: &StormArgs, folder: &Path) -> anyhow::Result<Exit> {
    let services = Services::start(args, folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the storm")?;
    let steps = ALL.len() * usize::try_from(args.runs)?;
    let bar = progress_bar(steps)?;
    let measured = unless_signalled(measure(&services, args, &bar));
    let runs = runtime.block_on(measured);
    bar.finish_and_clear();
    let report = PeerReport::new(args, services.describe()?, &runs?);
    if args.json {
        print_json(&report)?;
    } else {
        print(&table::text(&report))?;
    }
    Ok(if report.faults.is_empty() {
        Exit::Done
    } else {
        Exit::Refused
    })
}

async fn measure(
    services: &Services,
    args: &StormArgs,
    bar: &ProgressBar,
) -> anyhow::Result<Vec<Run>> {
    services.migrate().await?;
    let mut runs = Vec::new();
    for number in 1..=args.runs {
        let mut run = Run::new();
        for contender in ALL {
            bar.set_message(format!("run {number}: {}", contender.name()));
            let turn = turn(services, contender, args.size).await;
            run.push((contender, turn.with_context(|| contender.name())?));
            bar.inc(1);
        }
        runs.push(run);
    }
    Ok(runs)
}

/// One contender's turn: nobody else runs meanwhile.
async fn turn(services: &Services, contender: Contender, size: Size) -> anyhow::Result<Measured> {
    let (key, data) = (admin_key(), RunFolder::make(None)?);
    let mut command = services.command(contender, (&key, data.path()))?;
    let served = Served::start(&mut command, Cores(None)).await?;
    let client = Client::new(&format!("http://{}", served.address), &key)?;
    let shorter = Size {
        seconds: size.seconds.min(STORM_WARMUP_SECONDS_MAX),
        ..size
    };
    let (warm_up, given_back) = send_storm(client.clone(), Some(&key), shorter).await?;
    given_back?;
    let (storm, given_back) = send_storm(client, Some(&key), size).await?;
    given_back?;
    let setting = served.name.clone();
    served.stop().await?;
    Ok(Measured {
        setting,
        warm_up,
        storm,
    })
}
