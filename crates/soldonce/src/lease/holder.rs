//! `soldonce lease inspect` and `soldonce lease break`: for operators, who see the holder of a lease
//! and end its grant if they must.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use soldonce_lease::{
    Doctor, FencingToken, Leases, Name, OwnerInfo, ReleaseOutcome, Request, block_on,
};

use super::backend::{self, BackendArgs};
use crate::exit::Exit;
use crate::output::report;

/// Arguments of `soldonce lease inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    lease: LeaseName,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    backend: BackendArgs,
}

/// Arguments of `soldonce lease break`.
#[derive(Debug, Args)]
pub(crate) struct BreakArgs {
    #[command(flatten)]
    lease: LeaseName,
    /// The token that `inspect` told: a later grant is left alone
    #[arg(long, value_parser = token)]
    token: FencingToken,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    why: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    backend: BackendArgs,
}

#[derive(Debug, Args)]
struct LeaseName {
    /// What is leased
    name: Name,
    /// The group of the name, if it has one
    #[arg(long)]
    group: Option<Name>,
}

/// The holder of a lease, as JSON.
#[derive(Debug, Serialize)]
struct Holding<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    held: bool,
    #[serde(flatten)]
    holder: Option<Holder<'a>>,
}

#[derive(Debug, Serialize)]
struct Holder<'a> {
    token: String,
    held_ms: u64,
    remaining_ms: u64,
    /// Absent for a lease whose lifetime with renewals has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    cap_ms: Option<u64>,
    meta: Vec<MetaLine<'a>>,
}

#[derive(Debug, Serialize)]
struct MetaLine<'a> {
    key: &'a str,
    value: &'a str,
}

/// The outcome of `lease break`, as JSON.
#[derive(Debug, Serialize)]
struct BreakReport<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    outcome: &'static str,
    token: String,
    why: &'a str,
}

/// Runs `soldonce lease inspect`.
pub(crate) fn inspect(args: &InspectArgs) -> anyhow::Result<Exit> {
    let lease = &args.lease;
    if let Some(wrong) = args.backend.usage_error() {
        return Ok(wrong);
    }
    let info = match connect(&args.backend)? {
        Some(leases) => block_on(lease.request(&leases).inspect())
            .map_err(|error| anyhow!(args.backend.explain(&error)))?,
        None => None,
    };
    let info = info.as_ref();
    report(args.json, &lease.holding(info), || {
        describe(&lease.shown(), info)
    })?;
    Ok(Exit::done_if(info.is_some()))
}

pub(crate) fn break_lease(args: &BreakArgs) -> anyhow::Result<Exit> {
    let BreakArgs { lease, token, .. } = args;
    if let Some(wrong) = args.backend.usage_error() {
        return Ok(wrong);
    }
    let outcome = match connect(&args.backend)? {
        Some(leases) => block_on(lease.request(&leases).force_release(*token, &args.why))
            .map_err(|error| anyhow!(args.backend.explain(&error)))?,
        None => ReleaseOutcome::AlreadyGone,
    };
    let shown = lease.shown();
    let (word, by, told) = match outcome {
        ReleaseOutcome::Released => {
            let told = format!(
                "{shown}: the grant with token {token} is ended: {}",
                args.why
            );
            ("released", *token, told)
        }
        ReleaseOutcome::TakenBy(by) => {
            let told = format!("{shown}: nothing was done, the holder's token is {by}");
            ("taken", by, told)
        }
        ReleaseOutcome::AlreadyGone | _ => {
            let told = format!("{shown}: nothing was done, no process holds it");
            ("already_gone", *token, told)
        }
    };
    let broken = BreakReport {
        name: lease.name.as_str(),
        group: lease.group.as_ref().map(Name::as_str),
        outcome: word,
        token: by.to_string(),
        why: &args.why,
    };
    report(args.json, &broken, || format!("{told}\n"))?;
    Ok(Exit::done_if(outcome == ReleaseOutcome::Released))
}

/// Connects without checking the server's settings: the doctor does that. None where a database has
/// no tables for leases yet: then none is held.
fn connect(args: &BackendArgs) -> anyhow::Result<Option<Leases>> {
    let builder = backend::builder(args).map_err(|error| anyhow!(args.explain(&error)))?;
    match block_on(builder.doctor(Doctor::Off).connect()) {
        Ok(leases) => Ok(Some(leases)),
        Err(error) if args.lacks_tables(&error) => Ok(None),
        Err(error) => Err(anyhow!(args.explain(&error))),
    }
}

impl LeaseName {
    fn request(&self, leases: &Leases) -> Request {
        match &self.group {
            Some(group) => leases.group(group.clone(), [self.name.clone()]),
            None => leases.lease(self.name.clone()),
        }
    }

    fn shown(&self) -> String {
        match &self.group {
            Some(group) => format!("{} of {group}", self.name),
            None => self.name.to_string(),
        }
    }

    fn holding<'a>(&'a self, info: Option<&'a OwnerInfo>) -> Holding<'a> {
        let meta = |(key, value): &'a (String, String)| MetaLine { key, value };
        Holding {
            name: self.name.as_str(),
            group: self.group.as_ref().map(Name::as_str),
            held: info.is_some(),
            holder: info.map(|info| Holder {
                token: info.token.to_string(),
                held_ms: millis(info.held),
                remaining_ms: millis(info.remaining),
                cap_ms: info.cap.map(millis),
                meta: info.meta.iter().map(meta).collect(),
            }),
        }
    }
}

fn describe(shown: &str, info: Option<&OwnerInfo>) -> String {
    let Some(info) = info else {
        return format!("{shown}: no process holds it\n");
    };
    let cap = info.cap.map_or_else(
        || "no end".to_owned(),
        |cap| format!("at most {}", seconds(cap)),
    );
    let mut text = format!(
        "{shown}: held for {}\n  token      {}\n  remaining  {}, with renewals {cap}\n",
        seconds(info.held),
        info.token,
        seconds(info.remaining),
    );
    for (key, value) in &info.meta {
        // Writing to a String cannot fail.
        writeln!(text, "  {key:<9}  {value}").unwrap_or_default();
    }
    text
}

/// Formats a time as whole seconds and tenths.
fn seconds(span: Duration) -> String {
    let tenths = span.as_millis() / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Parses a token as `inspect` writes it, or its number.
fn token(text: &str) -> Result<FencingToken, String> {
    let number = || FencingToken::new(text.parse().ok()?);
    let token = text.parse().ok().or_else(number);
    token.ok_or_else(|| format!("`{text}` is no token: copy the 16 digits that `inspect` tells"))
}
