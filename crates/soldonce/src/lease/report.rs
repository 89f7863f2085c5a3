//! The report of a run, as JSON.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use super::outcome::Outcome;

#[derive(Debug, Serialize)]
struct Report<'a> {
    name: &'a str,
    outcome: &'static str,
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    held_ms: u64,
}

/// Token of a lease that was held, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HoldTime {
    pub(crate) token: Option<String>,
    pub(crate) held: Duration,
}

pub(crate) fn write(
    file: &Path,
    name: &str,
    outcome: &Outcome,
    hold: &HoldTime,
) -> anyhow::Result<()> {
    let report = Report {
        name,
        outcome: outcome.word(),
        exit_code: outcome.code(),
        reason: outcome.message(),
        token: hold.token.clone(),
        held_ms: u64::try_from(hold.held.as_millis()).unwrap_or(u64::MAX),
    };
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    std::fs::write(file, text)
        .with_context(|| format!("the report {} cannot be written", file.display()))
}
