//! Holds.

use soldonce_core::{Hold, Text};

use super::Damaged;
use super::codes::{state_number, state_of};
use super::column::Column;
use super::packed::unpack;
use super::reader::Reader;

/// The columns that [`get`] reads.
macro_rules! hold_columns {
    () => {
        " id, event_no, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
          max_expires_at, together"
    };
}

/// Returns the columns of a hold; `units` are written by [`pack`](super::packed::pack).
pub(crate) fn put<'a>(hold: &'a Hold, units: &'a [u8]) -> [Column<'a>; 13] {
    [
        Column::Id(*hold.id.bytes()),
        Column::Small(hold.event.0),
        Column::Id(*hold.holder.caller.bytes()),
        Column::Text(hold.holder.name.as_str()),
        Column::Code(state_number(&hold.state)),
        Column::OptId(hold.state.booking().map(|booking| *booking.bytes())),
        Column::OptText(hold.state.reason().map(Text::as_str)),
        Column::Count(hold.fence.0),
        Column::Bytes(units),
        Column::Long(hold.created_at.ms()),
        Column::Long(hold.expires_at.ms()),
        Column::Long(hold.max_expires_at.ms()),
        Column::OptFlag(hold.together),
    ]
}

pub(crate) fn get(row: &mut Reader<'_>) -> Result<Hold, Damaged> {
    Ok(Hold {
        id: row.get()?,
        event: row.get()?,
        holder: row.get()?,
        state: state_of(row.get()?, row.get()?, row.get()?)?,
        fence: row.get()?,
        units: unpack(row.get()?).ok_or_else(|| row.illegal("list of units"))?,
        created_at: row.get()?,
        expires_at: row.get()?,
        max_expires_at: row.get()?,
        together: row.get()?,
    })
}
