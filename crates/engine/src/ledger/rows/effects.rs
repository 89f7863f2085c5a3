//! Effects as columns of the outbox.

use soldonce_core::{Amount, Effect};

use super::Damaged;
use super::column::Column;
use super::reader::Reader;
use crate::ledger::OpenEffect;

/// The columns that [`get`] reads.
macro_rules! effect_columns {
    () => {
        "kind, booking, amount, total"
    };
}

pub(crate) fn put(effect: Effect) -> [Column<'static>; 4] {
    let (kind, amount, total) = match effect {
        Effect::Capture(_) => (0, None, None),
        Effect::Void(_) => (1, None, None),
        Effect::Refund { amount, total, .. } => (2, Some(amount.minor()), Some(total.minor())),
        Effect::CancelIntent(_) => (3, None, None),
        Effect::Authorise(_) => (4, None, None),
    };
    [
        Column::Code(kind),
        Column::Id(*effect.booking().bytes()),
        Column::OptLong(amount),
        Column::AddedLong(total),
    ]
}

/// Returns the columns `kind, booking, total`: a report settles every effect that has the same.
pub(crate) fn put_name(effect: Effect) -> [Column<'static>; 3] {
    let [kind, booking, _amount, total] = put(effect);
    [kind, booking, total]
}

/// Reads an effect with its time, the column before.
pub(crate) fn get_open(row: &mut Reader<'_>) -> Result<OpenEffect, Damaged> {
    let (at, effect) = (row.get()?, get(row)?);
    Ok(OpenEffect { effect, at })
}

fn get(row: &mut Reader<'_>) -> Result<Effect, Damaged> {
    let (kind, booking) = (row.get::<i64>()?, row.get()?);
    let amount = row.get::<Option<_>>()?.map(Amount::from_minor);
    let total = row.added_int()?.map(Amount::from_minor);
    match (kind, amount, total) {
        (0, None, None) => Ok(Effect::Capture(booking)),
        (1, None, None) => Ok(Effect::Void(booking)),
        (2, Some(amount), Some(total)) => Ok(Effect::Refund {
            booking,
            amount,
            total,
        }),
        (3, None, None) => Ok(Effect::CancelIntent(booking)),
        (4, None, None) => Ok(Effect::Authorise(booking)),
        _ => Err(row.illegal("effect")),
    }
}
