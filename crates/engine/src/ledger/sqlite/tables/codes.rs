//! Checksums over what rows of every store have, and the test of a row's own.

use crate::ledger::rows::codes::StateColumns;
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::Fault;

/// The three columns of a unit's state under a row's checksum.
pub(super) fn sum_state(checksum: Checksum, columns: StateColumns) -> Checksum {
    let owner = columns.owner.as_ref().map(<[u8; 16]>::as_slice);
    checksum
        .int(columns.state)
        .opt_bytes(owner)
        .opt_int(columns.until)
}

/// Passes a row whose checksum is that of its values.
pub(super) fn require_sum(
    table: &'static str,
    sum: Checksum,
    stored: i64,
    row: impl FnOnce() -> String,
) -> Result<(), Fault> {
    if sum.stored() == stored {
        return Ok(());
    }
    Err(Fault::damaged(
        table,
        format!("the checksum of {} does not fit", row()),
    ))
}
