//! `soldonce lab storm --peer`: the same storm at the product and at a server written as articles on
//! this subject advise, by turns in every run, on the same services; and whether the goals are met.

mod contender;
mod report;
mod services;

use std::path::Path;

use anyhow::Context;
use indicatif::ProgressBar;
use soldonce_server::Client;
use soldonce_testkit::TempFolder;

use self::contender::{ALL, Contender};
use self::report::{Measured, PeerReport};
use self::services::Services;
use super::{Size, StormArgs, send_storm};
use crate::exit::Exit;
use crate::kit::{Served, admin_key, print_report, progress_bar, unless_stopped};
use crate::load::{Transport, block_on};

/// Every contender's storm, in the order of the turns.
type Run = Vec<(Contender, Measured)>;

/// Runs all storms and prints the report. Refused after a violation, such as a seat given twice.
pub(super) fn run(args: &StormArgs, folder: &Path) -> anyhow::Result<Exit> {
    let services = Services::start(args, folder)?;
    let bar = progress_bar(ALL.len() * usize::try_from(args.runs)?)?;
    let runs = block_on(unless_stopped(measure(&services, args, &bar)));
    bar.finish_and_clear();
    let report = PeerReport::new(args, services.describe()?, &runs?);
    print_report(args.json, &report, || report.text(), report.faults.len())
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

/// Runs one contender's turn: no other runs meanwhile.
async fn turn(services: &Services, contender: Contender, size: Size) -> anyhow::Result<Measured> {
    let (key, data) = (admin_key(), TempFolder::new()?);
    let mut command = services.command(contender, (&key, data.path()))?;
    let served = Served::start(&mut command).await?;
    let client = Client::new(&format!("http://{}", served.address), &key)?;
    let load = (Transport::Http, size.of_warm_up());
    let (warm_up, released) = send_storm(client.clone(), Some(&key), load).await?;
    released?;
    let (storm, released) = send_storm(client, Some(&key), (Transport::Http, size)).await?;
    released?;
    let setting = served.name.clone();
    served.stop().await?;
    Ok(Measured {
        setting,
        warm_up,
        storm,
    })
}
