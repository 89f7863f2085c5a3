//! Effects as columns of the outbox.

use soldonce_core::{Amount, BookingId, Effect};

use super::Damaged;
use super::column::Column;
use super::reader::Reader;

const TABLE: &str = "outbox";

/// The columns that [`EffectColumns::get`] reads.
macro_rules! effect_columns {
    () => {
        "kind, booking, amount, total"
    };
}

/// An effect as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EffectColumns {
    /// 0 capture, 1 void, 2 refund, 3 cancel the intent, 4 authorise.
    pub(crate) kind: i64,
    pub(crate) booking: BookingId,
    /// Of a refund.
    pub(crate) amount: Option<i64>,
    /// Of a refund: what is to have gone back in all.
    pub(crate) total: Option<i64>,
}

impl EffectColumns {
    pub(crate) fn of(effect: Effect) -> Self {
        let (kind, amount, total) = match effect {
            Effect::Capture(_) => (0, None, None),
            Effect::Void(_) => (1, None, None),
            Effect::Refund { amount, total, .. } => (2, Some(amount.minor()), Some(total.minor())),
            Effect::CancelIntent(_) => (3, None, None),
            Effect::Authorise(_) => (4, None, None),
        };
        Self {
            kind,
            booking: effect.booking(),
            amount,
            total,
        }
    }

    /// Whether what settles one of them settles the other.
    pub(crate) fn is_settled_with(self, other: Self) -> bool {
        let named = |effect: Self| (effect.booking, effect.kind, effect.total);
        named(self) == named(other)
    }

    pub(crate) fn put(self) -> [Column<'static>; 4] {
        [
            Column::Code(self.kind),
            Column::Id(*self.booking.bytes()),
            Column::OptLong(self.amount),
            Column::AddedLong(self.total),
        ]
    }

    pub(crate) fn get(row: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self {
            kind: row.get()?,
            booking: row.get()?,
            amount: row.get()?,
            total: row.added_int()?,
        })
    }

    pub(crate) fn effect(self) -> Result<Effect, Damaged> {
        let booking = self.booking;
        match (self.kind, self.amount, self.total) {
            (0, None, None) => Ok(Effect::Capture(booking)),
            (1, None, None) => Ok(Effect::Void(booking)),
            (2, Some(amount), Some(total)) => Ok(Effect::Refund {
                booking,
                amount: Amount::from_minor(amount),
                total: Amount::from_minor(total),
            }),
            (3, None, None) => Ok(Effect::CancelIntent(booking)),
            (4, None, None) => Ok(Effect::Authorise(booking)),
            _ => Err(Damaged::new(TABLE, format!("no effect is {self:?}"))),
        }
    }
}
