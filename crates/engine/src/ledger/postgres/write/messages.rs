//! What webhook endpoints are told, as values of the statement.

use tokio_postgres::types::Type;

use super::Values;
use crate::ledger::postgres::tables::{Id, short};
use crate::ledger::rows::codes::number;
use crate::webhook::{Message, MessageKind};

/// $90 to $93.
pub(super) fn put(to: &mut Values, messages: &[Message]) {
    let ids = messages.iter().map(|message| Id(*message.id.bytes()));
    to.put(ids.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let kinds = messages
        .iter()
        .map(|message| short(number(&MessageKind::ALL, &message.kind)));
    to.put(kinds.collect::<Vec<_>>(), Type::INT2_ARRAY);
    let subjects = messages.iter().map(|message| Id(message.subject));
    to.put(subjects.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let bodies = messages.iter().map(|message| message.body.clone());
    to.put(bodies.collect::<Vec<_>>(), Type::TEXT_ARRAY);
}
