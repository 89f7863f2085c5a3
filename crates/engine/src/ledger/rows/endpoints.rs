//! Webhook endpoints.

use soldonce_core::Timestamp;

use super::Damaged;
use super::column::Column;
use super::reader::Reader;
use crate::webhook::{Endpoint, Kinds};

/// The columns that [`get`] reads.
macro_rules! endpoint_columns {
    () => {
        " id, url, kinds, rotation, rotated_at, created_at, disabled_at, quiet_until"
    };
}

pub(crate) fn put(endpoint: &Endpoint) -> [Column<'_>; 8] {
    let opt_time = |time: Option<Timestamp>| Column::OptLong(time.map(Timestamp::ms));
    [
        Column::Id(*endpoint.id.bytes()),
        Column::Text(&endpoint.url),
        Column::Long(endpoint.kinds.0.into()),
        Column::Small(endpoint.rotation),
        opt_time(endpoint.rotated_at),
        Column::Long(endpoint.created_at.ms()),
        opt_time(endpoint.disabled_at),
        opt_time(endpoint.quiet_until),
    ]
}

pub(crate) fn get(row: &mut Reader<'_>) -> Result<Endpoint, Damaged> {
    Ok(Endpoint {
        id: row.get()?,
        url: row.get::<&str>()?.into(),
        kinds: Kinds(i32::try_from(row.get::<i64>()?).map_err(|_| row.illegal("set of kinds"))?),
        rotation: row.get()?,
        rotated_at: row.get()?,
        created_at: row.get()?,
        disabled_at: row.get()?,
        quiet_until: row.get()?,
    })
}
