//! Units.

use soldonce_core::{Unit, UnitNo};
use tokio_postgres::Row;

use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::{Damaged, units};

/// Selects what [`read`] reads.
macro_rules! select {
    ($name:literal, $which:literal) => {
        concat!(
            $name,
            "\nSELECT ",
            unit_columns!(),
            " FROM units WHERE event_no = $1 ",
            $which
        )
    };
}

pub(in super::super) const UNITS_OF_EVENT: &str =
    select!("-- units_of_event", "AND version > 0 ORDER BY unit_no");

pub(in super::super) const UNITS: &str = select!("-- units", "AND unit_no = ANY ($2)");

/// Selects all units of an event, also those that never changed.
pub(in super::super) const UNITS_TO_VERIFY: &str =
    select!("-- units_to_verify", "ORDER BY unit_no");

pub(in super::super) const ADD_UNITS: &str = "-- add_units
INSERT INTO units (event_no, unit_no) SELECT $1, generate_series($2, $3 - 1)";

/// Reads a unit and its number.
pub(in super::super) fn read(row: &Row) -> Result<(UnitNo, Unit), Damaged> {
    let mut row = Reader::postgres(row, "units");
    Ok((row.get()?, units::get(&mut row)?))
}
