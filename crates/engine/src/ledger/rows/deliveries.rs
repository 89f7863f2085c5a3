//! The columns of webhook deliveries.

use super::Damaged;
use super::codes::number;
use super::column::Column;
use super::reader::Reader;
use crate::webhook::{Delivery, DeliveryState, DueDelivery, Message, MessageKind};

/// The columns that [`get`] reads.
macro_rules! log_columns {
    () => {
        " n, message, kind, at, state, attempts, status, problem, tried_at, next_at"
    };
}

/// Returns the columns `message, kind, subject, body`.
pub(crate) fn put(message: &Message) -> [Column<'_>; 4] {
    [
        Column::Id(*message.id.bytes()),
        Column::Code(number(&MessageKind::ALL, &message.kind)),
        Column::Id(message.subject),
        Column::Text(&message.body),
    ]
}

pub(crate) fn get(row: &mut Reader<'_>) -> Result<Delivery, Damaged> {
    Ok(Delivery {
        number: row.get()?,
        message: row.get()?,
        kind: row.code(&MessageKind::ALL)?,
        at: row.get()?,
        state: row.code(&DeliveryState::ALL)?,
        attempts: row.get()?,
        status: row.get::<Option<i64>>()?.and_then(|it| it.try_into().ok()),
        problem: row.get::<Option<&str>>()?.map(str::to_owned),
        tried_at: row.get()?,
        next_at: row.get()?,
    })
}

/// Reads the columns that never change: `n, endpoint, message, kind, subject, at, body`.
pub(crate) fn get_due(row: &mut Reader<'_>) -> Result<DueDelivery, Damaged> {
    let (number, endpoint, message) = (row.get()?, row.get()?, row.get()?);
    let kind = row.code(&MessageKind::ALL)?;
    let (_subject, _at): ([u8; 16], i64) = (row.get()?, row.get()?);
    Ok(DueDelivery {
        number,
        endpoint,
        message,
        kind,
        attempts: 0,
        body: row.get::<&str>()?.into(),
    })
}
