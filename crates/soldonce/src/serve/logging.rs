//! Log lines to standard error. Secrets are types without a readable `Debug`; nothing here adds any.

use std::io::IsTerminal;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, registry};

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
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let subscriber = registry().with(filter).with(filter_fn(is_free_of_values));
    subscriber.with(lines).init();
    Ok(())
}

/// Whether lines of this kind carry no values of SQL statements, the ledger's keys among them. The
/// driver writes them into its lines below `info`, which no setting turns on.
fn is_free_of_values(line: &Metadata<'_>) -> bool {
    *line.level() <= Level::INFO || !line.target().starts_with("tokio_postgres")
}
