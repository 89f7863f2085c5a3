//! What webhook endpoints are told, as values of the statement.

use super::Values;
use super::rows::{RowType, Rows};
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::tables::{Id, short};
use crate::ledger::rows::codes::number;
use crate::webhook::{Message, MessageKind};

/// $10.
pub(super) fn put(to: &mut Values, messages: &[Message]) -> Result<(), Failure> {
    let rows = Rows::of(messages, |message, row| {
        row.id(Id(*message.id.bytes()))?
            .short(short(number(&MessageKind::ALL, &message.kind)))?
            .id(Id(message.subject))?
            .text(&*message.body)?;
        Ok(())
    })?;
    to.put_rows(rows, RowType::Message);
    Ok(())
}
