//! Holders, bookings and what is written down beside them, as values of the statement.

use soldonce_core::{Booking, BookingState, LineState, PaymentState, Timestamp};

use super::Values;
use super::rows::{RowType, Rows};
use crate::ledger::postgres::batch::{Account, Batch};
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::replica::Replica;
use crate::ledger::postgres::tables::{Id, holder_key, int, short};
use crate::ledger::rows::codes::number;
use crate::ledger::rows::effects::EffectColumns;
use crate::ledger::rows::payments::payment_to_json;
use crate::ledger::rows::{Damaged, stored};

/// $14.
pub(super) fn put_accounts(to: &mut Values, accounts: &[Account]) -> Result<(), Failure> {
    let rows = Rows::of(accounts, |account, row| {
        row.id(account.key)?
            .id(Id(*account.holder.caller.bytes()))?
            .text(account.holder.name.as_str())?
            .int(int(account.bought)?)?
            .long(account.version)?;
        Ok(())
    })?;
    to.put_rows(rows, RowType::Holder);
    Ok(())
}

/// $15 and $16.
pub(super) fn put_bookings(
    to: &mut Values,
    replica: &Replica,
    batch: &Batch,
) -> Result<(), Failure> {
    let missing = || Damaged::new("bookings", "a booking is not in memory");
    let ids = batch.bookings().into_iter();
    let found = ids.map(|id| replica.inventory.booking(id).ok_or_else(missing));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    let rows = Rows::of(&found, |booking, row| {
        let payment = booking.payment.as_ref();
        let detail = payment
            .map(|payment| payment_to_json(payment))
            .transpose()?;
        row.id(Id(*booking.id.bytes()))?
            .id(Id(*booking.holder.caller.bytes()))?
            .text(booking.holder.name.as_str())?
            .id(holder_key(&booking.holder))?
            .id(booking.hold.map(|id| Id(*id.bytes())))?
            .short(short(number(&BookingState::ALL, &booking.state)))?
            .long(stored(booking.fence.0)?)?
            .text(
                booking
                    .reference
                    .as_ref()
                    .map(ToString::to_string)
                    .as_deref(),
            )?
            .short(payment.map(|payment| short(number(&PaymentState::ALL, &payment.state))))?
            .long(booking.created_at.ms())?
            .long(booking.confirmed_at.map(Timestamp::ms))?
            .text(detail.as_deref())?;
        Ok(())
    })?;
    to.put_rows(rows, RowType::Booking);
    put_lines(to, &found)
}

fn put_lines(to: &mut Values, bookings: &[&Booking]) -> Result<(), Failure> {
    let lines = bookings.iter().flat_map(|booking| {
        let lines = (0_i32..).zip(&booking.lines);
        lines.map(|(n, line)| (booking.id, n, line))
    });
    let rows = Rows::of(lines, |(booking, n, line), row| {
        row.id(Id(*booking.bytes()))?
            .int(n)?
            .int(int(line.unit.0)?)?
            .long(line.price.minor())?
            .long(stored(line.version.0)?)?
            .short(short(number(&LineState::ALL, &line.state)))?;
        Ok(())
    })?;
    to.put_rows(rows, RowType::Line);
    Ok(())
}

/// $17.
pub(super) fn put_records(to: &mut Values, batch: &Batch) -> Result<(), Failure> {
    let rows = Rows::of(&batch.records, |(key, reply), row| {
        row.id(Id(key.scoped.0))?
            .id(Id(key.fingerprint.0))?
            .short(short(reply.kind.number()))?
            .id(Id(reply.subject))?
            .bytes(&reply.body)?;
        Ok(())
    })?;
    to.put_rows(rows, RowType::Idempotency);
    Ok(())
}

/// $18 and $19: effects that are new, and those that are done.
pub(super) fn put_effects(to: &mut Values, batch: &Batch) -> Result<(), Failure> {
    let settled = batch.applied.iter().flat_map(|applied| &applied.settled);
    let settled: Vec<_> = settled.copied().map(EffectColumns::of).collect();
    for effects in [new_effects(batch), settled] {
        let rows = Rows::of(effects, |effect, row| {
            row.short(effect.kind)?
                .id(Id(*effect.booking.bytes()))?
                .long(effect.amount)?
                .long(effect.total)?;
            Ok(())
        })?;
        to.put_rows(rows, RowType::Effect);
    }
    Ok(())
}

/// What the batch leaves to be done. Rows that the statement adds it cannot see: what one command adds
/// and a later one settles is not added at all.
fn new_effects(batch: &Batch) -> Vec<EffectColumns> {
    let mut effects = Vec::new();
    for applied in &batch.applied {
        effects.retain(|effect| !applied.settled.contains(effect));
        effects.extend(&applied.effects);
    }
    effects.into_iter().map(EffectColumns::of).collect()
}
