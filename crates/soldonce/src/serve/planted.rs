//! Only for tests: a bug planted on purpose, chosen by `SOLDONCE_PLANTED`, and a short write-ahead
//! log by `SOLDONCE_LOG_PAGES`, so that it is moved often.

use soldonce_engine::ledger::sqlite::{PlantedLedger, SqliteOptions};

/// Plants the bug that the environment names, if it names one, and shortens the log.
///
/// # Errors
/// When there is no bug of this name, or the length is no number.
pub(super) fn plant(options: &SqliteOptions) -> anyhow::Result<SqliteOptions> {
    let mut options = options.clone();
    if let Some(pages) = std::env::var_os("SOLDONCE_LOG_PAGES") {
        options.log_pages = pages.to_string_lossy().parse()?;
    }
    if let Some(named) = std::env::var_os("SOLDONCE_PLANTED") {
        let mut all = PlantedLedger::ALL.into_iter();
        let Some(bug) = all.find(|bug| named == bug.as_str()) else {
            anyhow::bail!("SOLDONCE_PLANTED={}: no such bug", named.display());
        };
        tracing::warn!(bug = bug.as_str(), "a bug is planted");
        options.planted = Some(bug);
    }
    Ok(options)
}
