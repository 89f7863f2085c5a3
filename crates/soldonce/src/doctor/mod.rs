//! `soldonce doctor`: looks at the machine, the data folder, the ledger's database, the lease
//! backend and the shield, and reports what is wrong or may fail. Changes nothing but a small file
//! that it writes, syncs and removes to time the disk.

mod clock;
mod database;
mod disk;
mod leases;
mod machine;
mod shield;

use std::borrow::Cow;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::clear_text::{ClearLink, FIX};
use crate::exit::Exit;
use crate::lease::backend::BackendArgs;
use crate::output::report;

/// Arguments of `soldonce doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  soldonce doctor
  soldonce doctor --data /var/lib/soldonce --json
  soldonce doctor --redis-url redis://10.0.0.5 --database-url postgres://app@db/app

A database is looked at as one of a ledger. Leases are looked for in Redis if it is given, else in the database. A
Redis that has only limits and the shield is given by --shield-url, with SOLDONCE_REDIS_URL unset or empty.
Exit code 1 when something is wrong, 0 when there are only remarks.")]
pub(crate) struct DoctorArgs {
    /// The folder of the embedded ledger
    #[arg(long, env = "SOLDONCE_DATA", value_name = "FOLDER")]
    #[arg(default_value = "./data")]
    data: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    backend: BackendArgs,
    /// The Redis of the shield: whether it answers in time
    #[arg(long, env = "SOLDONCE_SHIELD_URL", hide_env_values = true)]
    #[arg(value_name = "URL")]
    shield_url: Option<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Grade {
    /// As it should be.
    Good,
    /// The server does not permit the check.
    #[serde(rename = "not_verifiable")]
    NotVerifiable,
    /// Works, but may fail later.
    Remark,
    /// Does not work, or loses data.
    Wrong,
}

/// The result of one check.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) what: &'static str,
    pub(crate) grade: Grade,
    pub(crate) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<Cow<'static, str>>,
}

impl Finding {
    pub(crate) fn good(what: &'static str, found: impl Into<String>) -> Self {
        Self {
            what,
            grade: Grade::Good,
            found: found.into(),
            fix: None,
        }
    }

    pub(crate) fn remark(what: &'static str, found: impl Into<String>, fix: &'static str) -> Self {
        Self {
            grade: Grade::Remark,
            fix: Some(fix.into()),
            ..Self::good(what, found)
        }
    }

    pub(crate) fn wrong(what: &'static str, found: impl Into<String>, fix: &'static str) -> Self {
        Self {
            grade: Grade::Wrong,
            ..Self::remark(what, found, fix)
        }
    }

    /// Creates a remark where there is something to repair.
    fn remark_if(what: &'static str, found: String, fix: Option<&'static str>) -> Self {
        match fix {
            Some(fix) => Self::remark(what, found, fix),
            None => Self::good(what, found),
        }
    }
}

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<Exit> {
    let mut findings = machine::look();
    // With a database a server may have no folder.
    if args.data.exists() || args.backend.database_url().is_none() {
        findings.extend(disk::look(&args.data));
    }
    if args.backend.is_named() {
        if let Some(wrong) = args.backend.usage_error() {
            return Ok(wrong);
        }
        if let Some(url) = args.backend.database_url() {
            findings.extend(database::look(url)?);
        }
        findings.extend(leases::look(&args.backend));
    }
    if let Some(url) = &args.shield_url {
        findings.push(shield::look(url)?);
    }
    let shield = ClearLink::of("shield_url", args.shield_url.as_ref());
    let links = args.backend.clear_links().chain(shield);
    findings.extend(links.map(|ClearLink { setting, host }| {
        Finding::remark("link", format!("{setting} leads to {host}"), FIX)
    }));
    report(args.json, &findings, || describe(&findings))?;
    let is_wrong = |finding: &Finding| finding.grade == Grade::Wrong;
    Ok(Exit::done_if(!findings.iter().any(is_wrong)))
}

fn describe(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let mark = match finding.grade {
            Grade::Good => "ok    ",
            Grade::NotVerifiable => "?     ",
            Grade::Remark => "remark",
            Grade::Wrong => "WRONG ",
        };
        let fix = finding.fix.as_ref().map(|fix| format!("\n         {fix}"));
        let fix = fix.unwrap_or_default();
        format!("{mark}  {}: {}{fix}\n", finding.what, finding.found)
    };
    findings.iter().map(line).collect()
}
