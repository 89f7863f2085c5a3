//! Charts, as they were sent. Other tables refer to a unit by its number only, so a chart that is
//! numbered differently than before must stop the start.

use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use soldonce_core::Chart;

use super::{all_rows, execute, first_row};
use crate::ledger::rows::charts::{digest, read_again, sha256};
use crate::ledger::rows::codes::small;
use crate::ledger::sqlite::fault::{Fault, one_row};

const TABLE: &str = "charts";

statements! {
    INSERT_CHART = "-- insert_chart
INSERT INTO charts (chart_no, document, sha256, units, digest) VALUES (?1, ?2, ?3, ?4, ?5)";

    CHART = "-- chart
SELECT document, sha256, units, digest FROM charts WHERE chart_no = ?1";

    CHART_NUMBERS = "-- chart_numbers
SELECT chart_no, sha256 FROM charts ORDER BY chart_no";
}

pub(crate) fn write(
    connection: &Connection,
    chart_no: i64,
    document: &[u8],
    chart: &Chart,
) -> Result<(), Fault> {
    let (sha, digest) = (sha256(document), digest(chart));
    let values = params![chart_no, document, sha, chart.units(), digest];
    one_row("insert_chart", execute(connection, INSERT_CHART, values)?)
}

/// Lists the numbers of all charts with the hashes of their documents.
pub(crate) fn numbers(connection: &Connection) -> Result<Vec<(i64, [u8; 32])>, Fault> {
    all_rows(connection, CHART_NUMBERS, [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// Reads a chart; fails unless its document and the number of every unit are as they were stored.
pub(crate) fn find(connection: &Connection, chart_no: i64) -> Result<Arc<Chart>, Fault> {
    let missing = || Fault::damaged(TABLE, format!("there is no chart {chart_no}"));
    let read = |row: &Row<'_>| {
        let document: Vec<u8> = row.get(0)?;
        let (sha, units, known): ([u8; 32], i64, [u8; 32]) =
            (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok((document, sha, units, known))
    };
    let row = first_row(connection, CHART, [chart_no], read)?;
    let (document, sha, units, known) = row.ok_or_else(missing)?;
    if sha256(&document) != sha {
        let what = format!("the document of chart {chart_no} has changed");
        return Err(Fault::damaged(TABLE, what));
    }
    let chart = read_again(chart_no, &document, small(units, TABLE)?, known)?;
    Ok(Arc::new(chart))
}
