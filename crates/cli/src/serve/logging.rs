//! Log lines to standard error. Secrets are types without a readable `Debug`; nothing here adds any.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::LogFormat;

/// Starts logging at `info`, or as `SOLDONCE_LOG` says, such as `debug` or `soldonce_server=trace`.
///
/// # Errors
/// When `SOLDONCE_LOG` is no filter.
pub(crate) fn start_logging(format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::builder()
        .with_env_var("SOLDONCE_LOG")
        .with_default_directive(tracing::level_filters::LevelFilter::INFO.into())
        .from_env()?
        // Migrations are told by the ledger itself.
        .add_directive("refinery_core=warn".parse()?);
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}
