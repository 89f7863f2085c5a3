//! Reads seat plans, JSON in one of four formats, into core's charts, and writes charts as JSON.
//! Every refusal names the place in the JSON, the value there and what would be right. Sells
//! nothing and stores nothing.

mod place;
mod strict;

mod areas;
mod grid;
mod native;
mod pretix;
mod seats;

mod summary;
mod write;

#[cfg(test)]
mod tests;

use serde::Deserialize;
use soldonce_core::{Chart, Invalid};

pub use place::explain;
pub use pretix::read_pretix_plan;
pub use strict::Object;
pub use summary::{AreaSummary, CategorySummary, ChartSummary, summary};
pub use write::{ChartDocument, write};

/// Most zones one chart may have: their names are compared with each other.
const ZONES_PER_CHART_MAX: usize = 1_000;
/// The zone of the formats that know no zones.
const ONLY_ZONE: &str = "main";

/// A chart and what its reader had to change or leave out.
#[derive(Clone, Debug)]
pub struct ReadChart {
    pub chart: Chart,
    /// Sentences for the author of the plan, such as "`x y` became `x-y`".
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Grid,
    Seats,
    Soldonce,
    Pretix,
}

/// The format alone. Unlike the formats themselves it lets every other property pass.
#[derive(Deserialize)]
struct Head {
    format: Option<Format>,
}

/// Reads a chart of any format, chosen by its `format`: a file, or the bytes of a request's raw
/// `chart` value. Places in errors begin with `chart`, lines and columns count from its start.
///
/// # Errors
/// [`Invalid`] with the place in the JSON.
pub fn read(json: &[u8]) -> Result<ReadChart, Invalid> {
    let head: strict::Object<Head> = place::parse("chart", json)?;
    let chart = match head.0.format {
        Some(Format::Grid) => grid::read(json)?,
        Some(Format::Seats) => seats::read(json)?,
        Some(Format::Soldonce) => native::read(json)?,
        Some(Format::Pretix) => return pretix::read(json),
        None => {
            let reason = "it is missing: `grid`, `seats`, `soldonce` or `pretix`; a plan \
                          exported by pretix is put into {\"format\":\"pretix\",\"plan\":..}";
            return Err(Invalid::new("chart.format", reason.to_owned()));
        }
    };
    let notes = Vec::new();
    Ok(ReadChart { chart, notes })
}
