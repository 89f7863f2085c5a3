//! Holders, bookings and what is written with them, as values of the call.

use soldonce_core::{Booking, BookingState, LineState, PaymentState, Timestamp};

use super::Values;
use super::rows::{RowType, Rows};
use crate::ledger::postgres::batch::Batch;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::read_set::ReadSet;
use crate::ledger::postgres::replica::{Account, Replica};
use crate::ledger::postgres::tables::{Id, holder_key, int, short};
use crate::ledger::rows::codes::number;
use crate::ledger::rows::effects::EffectColumns;
use crate::ledger::rows::payments::payment_to_json;
use crate::ledger::rows::{Damaged, stored};
use crate::webhook::{Message, MessageKind};

/// The holders whose budgets count.
pub(super) fn put_accounts(to: &mut Values, accounts: &[Account]) -> Result<(), Failure> {
    let rows = Rows::of(accounts, |account, row| {
        row.id(account.key)?
            .id(Id(*account.holder.caller.bytes()))?
            .text(account.holder.name.as_str())?
            .int(int(account.bought)?)?
            .long(account.version)?;
        Ok(())
    })?;
    to.put_rows("holder_rows", rows, RowType::Holder);
    Ok(())
}

/// The bookings that change, with all of their lines.
pub(super) fn put_bookings(
    to: &mut Values,
    replica: &Replica,
    read_set: &ReadSet,
) -> Result<(), Failure> {
    let missing = || Damaged::new("bookings", "a booking is not in memory");
    let seen = read_set.bookings.iter();
    let found = seen.map(|(id, version)| {
        let booking = replica.inventory.booking(*id).ok_or_else(missing)?;
        Ok((booking, *version))
    });
    let found = found.collect::<Result<Vec<(&Booking, i64)>, Damaged>>()?;
    let rows = Rows::of(&found, |(booking, version), row| {
        let payment = booking.payment.as_ref();
        let detail = payment
            .map(|payment| payment_to_json(payment))
            .transpose()?;
        row.id(Id(*booking.id.bytes()))?
            .long(*version)?
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
    to.put_rows("booking_rows", rows, RowType::Booking);
    put_lines(to, &found)
}

fn put_lines(to: &mut Values, bookings: &[(&Booking, i64)]) -> Result<(), Failure> {
    let lines = bookings.iter().flat_map(|(booking, _)| {
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
    to.put_rows("line_rows", rows, RowType::Line);
    Ok(())
}

/// What was answered to idempotency keys.
pub(super) fn put_records(to: &mut Values, batch: &Batch) -> Result<(), Failure> {
    let rows = Rows::of(&batch.records, |(key, reply), row| {
        row.id(Id(key.scoped.0))?
            .id(Id(key.fingerprint.0))?
            .short(short(reply.kind.number()))?
            .id(Id(reply.subject))?
            .bytes(&reply.body)?;
        Ok(())
    })?;
    to.put_rows("record_rows", rows, RowType::Idempotency);
    Ok(())
}

/// Effects that are new, and those that are done.
pub(super) fn put_effects(to: &mut Values, batch: &Batch) -> Result<(), Failure> {
    let settled = batch.applied.iter().flat_map(|applied| &applied.settled);
    let settled: Vec<_> = settled.copied().map(EffectColumns::of).collect();
    for (name, effects) in [
        ("new_effects", new_effects(batch)),
        ("done_effects", settled),
    ] {
        let rows = Rows::of(effects, |effect, row| {
            row.short(effect.kind)?
                .id(Id(*effect.booking.bytes()))?
                .long(effect.amount)?
                .long(effect.total)?;
            Ok(())
        })?;
        to.put_rows(name, rows, RowType::Effect);
    }
    Ok(())
}

/// What the batch leaves to be done: what one command adds and a later one settles is not added at all.
fn new_effects(batch: &Batch) -> Vec<EffectColumns> {
    let mut effects = Vec::new();
    for applied in &batch.applied {
        effects.retain(|effect| !applied.settled.contains(effect));
        effects.extend(&applied.effects);
    }
    effects.into_iter().map(EffectColumns::of).collect()
}

/// What webhook endpoints are to get.
pub(super) fn put_messages(to: &mut Values, messages: &[Message]) -> Result<(), Failure> {
    let rows = Rows::of(messages, |message, row| {
        row.id(Id(*message.id.bytes()))?
            .short(short(number(&MessageKind::ALL, &message.kind)))?
            .id(Id(message.subject))?
            .text(&*message.body)?;
        Ok(())
    })?;
    to.put_rows("message_rows", rows, RowType::Message);
    Ok(())
}
