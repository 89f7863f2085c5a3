//! Log lines to standard error. Secrets are types without a readable `Debug`; nothing here adds any.

use std::io::IsTerminal;

use soldonce_engine::metrics::SPANS;
use tracing::subscriber::with_default;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, registry};

use super::traces::Traces;
use super::{LogFormat, Settings};
use crate::exit::usage;

/// The variable with the level of all log lines or of some: `debug`, `soldonce_server=trace`.
const VARIABLE: &str = "SOLDONCE_LOG";

/// Starts logging at `info`, or as `SOLDONCE_LOG` says; and sends spans if there is a collector, as long as what it
/// returns lives.
pub(crate) fn start_logging(settings: &Settings) -> anyhow::Result<Option<Traces>> {
    let given = std::env::var_os(VARIABLE).unwrap_or_default();
    let filter = filter(&given.to_string_lossy()).map_err(usage)?;
    let lines = lines(settings.log_format, filter);
    // The exporter warns of OpenTelemetry's variables while it is made.
    let early = registry().with(written(settings.log_format).with_filter(LevelFilter::WARN));
    let traces = with_default(early, || settings.otlp_endpoint.as_deref().map(Traces::to));
    let traces = traces.transpose().map_err(usage)?;
    let mut layers = vec![lines];
    layers.extend(traces.as_ref().map(|traces| traces.layer().boxed()));
    registry().with(layers).init();
    Ok(traces)
}

type Lines = Box<dyn Layer<Registry> + Send + Sync>;

/// Builds what writes the lines that `filter` lets through and that carry no values.
fn lines(format: LogFormat, filter: EnvFilter) -> Lines {
    // Without a hint of its own no callsite would be off by its level alone, those of drivers among them.
    let free = filter_fn(is_free_of_values).with_max_level_hint(LevelFilter::TRACE);
    written(format).with_filter(filter.and(free)).boxed()
}

fn written(format: LogFormat) -> Lines {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false);
    match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    }
}

/// Parses a filter on top of `info`: a directive for some lines leaves the others as they are.
fn filter(given: &str) -> anyhow::Result<EnvFilter> {
    // A peer can have `h2` warn of each of its frames.
    let read = EnvFilter::try_new(format!("info,h2=error,{SPANS}=off,{given}"));
    // Its source says the same again.
    let read = read.map_err(|wrong| {
        anyhow::anyhow!("{VARIABLE}: {wrong}; write debug, or soldonce_server=debug")
    })?;
    // Migrations are told by the ledger itself.
    Ok(read.add_directive("refinery_core=warn".parse()?))
}

/// Tells whether log lines of this kind carry no values of SQL statements, the ledger's keys among
/// them. The driver writes them into its lines below `info`, which no setting turns on.
fn is_free_of_values(line: &Metadata<'_>) -> bool {
    *line.level() <= Level::INFO || !line.target().starts_with("tokio_postgres")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drivers ask the level before they build a line.
    #[test]
    fn lines_below_info_are_off_by_their_level() {
        let level = |given| lines(LogFormat::Text, filter(given).unwrap()).max_level_hint();
        assert_eq!(level(""), Some(LevelFilter::INFO));
        assert_eq!(level("debug"), Some(LevelFilter::DEBUG));
    }

    #[test]
    fn a_filter_of_some_lines_leaves_the_others_at_info() {
        let shown = |given: &str| filter(given).unwrap().to_string();
        for (given, told) in [
            ("", "info"),
            ("soldonce_server=debug", "info"),
            ("inof", "info"),
            ("warn", "warn"),
            ("off", "off"),
        ] {
            let shown = shown(given);
            assert!(shown.split(',').any(|one| one == told), "{given}: {shown}");
            assert!(shown.contains("h2=error"), "{given}: {shown}");
        }
        let wrong = format!("{:#}", filter("soldonce_server=loud").unwrap_err());
        assert_eq!(wrong.matches("SOLDONCE_LOG").count(), 1, "{wrong}");
    }
}
