//! Seat plans, as they were given. The number of a unit is all that other tables know of it, so a
//! chart that is read differently than before must stop the start.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};
use soldonce_core::{Chart, UnitNo};

use super::codes::small;
use crate::ledger::sqlite::fault::{Fault, one_row};

const TABLE: &str = "charts";

const INSERT_CHART: &str = "-- insert_chart
INSERT INTO charts (chart_no, document, sha256, units, digest) VALUES (?1, ?2, ?3, ?4, ?5)";

const CHART: &str = "-- chart
SELECT document, sha256, units, digest FROM charts WHERE chart_no = ?1";

const CHART_NUMBERS: &str = "-- chart_numbers
SELECT chart_no, sha256 FROM charts ORDER BY chart_no";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT_CHART, CHART, CHART_NUMBERS];

/// SHA-256 of a document.
pub(crate) fn sha256(document: &[u8]) -> [u8; 32] {
    Sha256::digest(document).into()
}

/// SHA-256 of everything that gives a unit its number and its price: names and categories, in order.
pub(crate) fn digest(chart: &Chart) -> [u8; 32] {
    let mut sha = Sha256::new();
    let mut bytes = Vec::with_capacity(1 << 16);
    let put = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(text.as_bytes());
    };
    for category in chart.categories() {
        put(&mut bytes, category);
    }
    for seat in (0..chart.seats()).map(UnitNo) {
        match chart.unit_name(seat) {
            soldonce_core::UnitName::Seat(id) => put(&mut bytes, id),
            soldonce_core::UnitName::Place { .. } => put(&mut bytes, ""),
        }
        bytes.extend(chart.category_of(seat).0.to_be_bytes());
        if bytes.len() >= 1 << 15 {
            sha.update(&bytes);
            bytes.clear();
        }
    }
    for area in chart.areas() {
        put(&mut bytes, area.id.as_str());
        bytes.extend(area.category.0.to_be_bytes());
        bytes.extend(area.first.0.to_be_bytes());
        bytes.extend(area.capacity.to_be_bytes());
    }
    sha.update(&bytes);
    sha.finalize().into()
}

/// Writes a chart.
pub(crate) fn write(
    connection: &Connection,
    chart_no: i64,
    document: &[u8],
    chart: &Chart,
) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(INSERT_CHART)?;
    let (sha, digest) = (sha256(document), digest(chart));
    let rows = statement.execute(params![chart_no, document, sha, chart.units(), digest])?;
    one_row("insert_chart", rows)
}

/// The numbers of all charts and the hashes of their documents.
pub(crate) fn numbers(connection: &Connection) -> Result<Vec<(i64, [u8; 32])>, Fault> {
    let mut statement = connection.prepare_cached(CHART_NUMBERS)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Reads a chart again and passes it if every unit has the number it had.
pub(crate) fn find(connection: &Connection, chart_no: i64) -> Result<Arc<Chart>, Fault> {
    let missing = || Fault::damaged(TABLE, format!("there is no chart {chart_no}"));
    let mut statement = connection.prepare_cached(CHART)?;
    let row = statement.query_row([chart_no], |row| {
        let document: Vec<u8> = row.get(0)?;
        let (sha, units, known): ([u8; 32], i64, [u8; 32]) =
            (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok((document, sha, units, known))
    });
    let (document, sha, units, known) = row.optional()?.ok_or_else(missing)?;
    if sha256(&document) != sha {
        return Err(Fault::damaged(
            TABLE,
            format!("the document of chart {chart_no} has changed"),
        ));
    }
    let chart = crate::chart::read(&document)
        .map_err(|error| Fault::damaged(TABLE, format!("chart {chart_no} is unreadable: {error}")))?
        .chart;
    if chart.units() != small(units, TABLE)? || digest(&chart) != known {
        let what = format!(
            "chart {chart_no} is numbered in another way by this version of soldonce: \
             start the version that wrote it"
        );
        return Err(Fault::damaged(TABLE, what));
    }
    Ok(Arc::new(chart))
}
