//! A bug planted on purpose, chosen by `SOLDONCE_PLANTED`: only for tests that must catch it.

use soldonce_engine::ledger::sqlite::{PlantedLedger, SqliteOptions};

/// Plants the bug that the environment names, if it names one.
///
/// # Errors
/// When there is no bug of this name.
pub(super) fn plant(options: &SqliteOptions) -> anyhow::Result<SqliteOptions> {
    let Some(named) = std::env::var_os("SOLDONCE_PLANTED") else {
        return Ok(options.clone());
    };
    let bug = PlantedLedger::ALL
        .into_iter()
        .find(|bug| named == bug.as_str());
    let Some(bug) = bug else {
        anyhow::bail!("SOLDONCE_PLANTED={}: no such bug", named.display());
    };
    tracing::warn!(bug = bug.as_str(), "a bug is planted");
    Ok(SqliteOptions {
        planted: Some(bug),
        ..options.clone()
    })
}
