//! `soldonce verify`: checks a ledger against itself, live or stopped.

use std::io::IsTerminal;

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use soldonce_engine::ledger::verify::{Finding, Progress, VerifyReport, Watcher};
use soldonce_engine::ledger::{postgres, sqlite};

use crate::exit::Exit;
use crate::serve::{LedgerArgs, LedgerPlace};
use crate::{block_on, output};

/// Arguments of `soldonce verify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  soldonce verify --data ./data
  soldonce verify --data /var/lib/soldonce --json
  soldonce verify --database-url postgres://soldonce@db/soldonce

Reads only; servers go on meanwhile. Every event's history is hashed again link by link and judged
by the auditor, and the unit rows, holds and bookings must be what it leads to. A database is read
event by event, each in one snapshot, without a lock that a command waits for; a standby serves, too.
A copy that SQLite's online backup made is verified like a folder; it lacks the file that tells whether
commits are missing at its end, which is a remark.
Findings beyond the first 1,000 are counted and left out.
Exit code 0 when nothing is wrong, 1 with findings, 3 when there is no ledger to read.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
}

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<Exit> {
    let place = args.ledger.place()?;
    let report = watched(|show| match &place {
        LedgerPlace::Folder(options) => {
            sqlite::verify::verify(&options.folder, show).map_err(LedgerPlace::unread)
        }
        LedgerPlace::Database(options) => Ok(block_on(postgres::verify(options, show))??),
    })?;
    let report = report.context("nothing was verified")?;
    output::report(args.ledger.json, &report, || describe(&report))?;
    Ok(Exit::done_if(report.is_clean()))
}

/// Runs `verify` under a progress bar.
pub(crate) fn watched<T>(verify: impl FnOnce(&mut Watcher<'_>) -> T) -> anyhow::Result<T> {
    let bar = progress_bar("transitions")?;
    let verified = verify(&mut |progress: Progress| {
        bar.set_length(progress.all);
        bar.set_position(progress.done);
    });
    bar.finish_and_clear();
    Ok(verified)
}

/// Creates a progress bar, hidden unless standard error is a terminal.
pub(crate) fn progress_bar(of: &str) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let template = format!("{{bar:40}} {{pos}} of {{len}} {of}, {{eta}} left");
    let style = ProgressStyle::with_template(&template)?;
    Ok(ProgressBar::new(0).with_style(style))
}

pub(crate) fn describe(report: &VerifyReport) -> String {
    let line = |grade: &str, found: &Finding| {
        let event = found.event.as_deref();
        let event = event.map(|event| format!(" event={event}"));
        let (what, detail) = (&found.what, &found.detail);
        format!("{grade} {what}{} {detail}", event.unwrap_or_default())
    };
    let findings = report.findings.iter().map(|found| line("VIOLATION", found));
    let remarks = report.remarks.iter().map(|found| line("remark", found));
    let mut lines: Vec<String> = findings.chain(remarks).collect();
    lines.push(format!(
        "{} events, {} commits, {} transitions, {} unit rows, {} holds, {} bookings",
        report.events,
        report.commits,
        report.transitions,
        report.units,
        report.holds,
        report.bookings
    ));
    lines.push(match report.findings.len() + report.findings_left_out {
        0 => "nothing is wrong".to_owned(),
        1 => "1 finding: stop selling from this ledger and keep a copy of it".to_owned(),
        many => format!("{many} findings: stop selling from this ledger and keep a copy of it"),
    });
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_that_are_left_out_are_counted() {
        let found = Finding {
            event: None,
            what: "stray rows".to_owned(),
            detail: "2 rows".to_owned(),
        };
        let report = VerifyReport {
            findings: vec![found],
            findings_left_out: 2,
            ..VerifyReport::default()
        };
        assert!(describe(&report).contains("\n3 findings: "));
    }
}
