//! Units.

use soldonce_core::{Unit, UnitNo};

use crate::ledger::postgres::database::Select;
use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::{Damaged, units};

/// Selects what [`get`] reads.
macro_rules! select {
    ($name:literal, $which:literal) => {
        (
            concat!(
                $name,
                "\nSELECT ",
                unit_columns!(),
                " FROM units WHERE event_no = $1 ",
                $which
            ),
            "units",
        )
    };
}

pub(in super::super) const UNITS_OF_EVENT: Select =
    select!("-- units_of_event", "AND version > 0 ORDER BY unit_no");

pub(in super::super) const UNITS: Select = select!("-- units", "AND unit_no = ANY ($2)");

/// Selects all units of an event, also those that never changed.
pub(in super::super) const UNITS_TO_VERIFY: Select =
    select!("-- units_to_verify", "ORDER BY unit_no");

pub(in super::super) const ADD_UNITS: &str = "-- add_units
INSERT INTO units (event_no, unit_no) SELECT $1, generate_series($2, $3 - 1)";

pub(in super::super) fn get(row: &mut Reader<'_>) -> Result<(UnitNo, Unit), Damaged> {
    Ok((row.get()?, units::get(row)?))
}
