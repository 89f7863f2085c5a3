//! Holders, bookings and what is written with them, as values of the call.

use soldonce_core::{Booking, Effect};

use super::Values;
use super::rows::{RowType, Rows};
use crate::ledger::batch::Batch;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::read_set::ReadSet;
use crate::ledger::postgres::replica::{Account, Replica};
use crate::ledger::postgres::tables::holder_key;
use crate::ledger::rows::bookings::{self, put_line};
use crate::ledger::rows::column::Column;
use crate::ledger::rows::effects::{self, put_name};
use crate::ledger::rows::{Damaged, deliveries, replies};
use crate::webhook::Message;

/// Adds the holders whose budgets count.
pub(super) fn put_accounts(to: &mut Values, accounts: &[Account]) -> Result<(), Failure> {
    let rows = Rows::of(accounts, |account, row| {
        row.put(&[
            Column::Id(account.key.0),
            Column::Id(*account.holder.caller.bytes()),
            Column::Text(account.holder.name.as_str()),
            Column::Small(account.bought),
            Column::Long(account.version),
        ])
    })?;
    to.put_rows("holder_rows", rows, RowType::Holder);
    Ok(())
}

/// Adds the bookings that change, with all of their lines.
pub(super) fn put_bookings(
    to: &mut Values,
    replica: &Replica,
    read_set: &ReadSet,
) -> Result<(), Failure> {
    let missing = || Damaged::new("bookings", "a booking is not in memory");
    let found = read_set.bookings.iter().map(|(id, version)| {
        let booking = replica.inventory.booking(*id).ok_or_else(missing)?;
        Ok((booking, *version))
    });
    let found = found.collect::<Result<Vec<(&Booking, i64)>, Damaged>>()?;
    let rows = Rows::of(&found, |(booking, version), row| {
        let detail = bookings::detail(booking)?;
        let [id, _event, caller, holder, rest @ ..] = bookings::put(booking, detail.as_deref());
        let key = Column::Id(holder_key(&booking.holder).0);
        row.put(&[id, Column::Long(*version), caller, holder, key])?;
        row.put(&rest)
    })?;
    to.put_rows("booking_rows", rows, RowType::Booking);
    put_lines(to, &found)
}

fn put_lines(to: &mut Values, bookings: &[(&Booking, i64)]) -> Result<(), Failure> {
    let lines = bookings.iter().flat_map(|(booking, _)| {
        let lines = (0..).zip(&booking.lines);
        lines.map(|(n, line)| (booking.id, n, line))
    });
    let rows = Rows::of(lines, |(booking, n, line), row| {
        row.put(&[Column::Id(*booking.bytes()), Column::Small(n)])?;
        row.put(&put_line(line))
    })?;
    to.put_rows("line_rows", rows, RowType::Line);
    Ok(())
}

/// Adds the records of idempotency keys: their answers.
pub(super) fn put_records(to: &mut Values, batch: &Batch) -> Result<(), Failure> {
    let rows = Rows::of(&batch.records, |(key, reply), row| {
        row.put(&replies::put_key(*key))?;
        row.put(&replies::put(reply))
    })?;
    to.put_rows("record_rows", rows, RowType::Idempotency);
    Ok(())
}

/// Adds effects that are new, and those that are done. One that a command adds and a later one
/// settles is not stored: as a done one it meets no row. One that a command settles and a later one
/// wants again is only new: the call stores what is new before it settles.
pub(super) fn put_effects(to: &mut Values, batch: &Batch) -> Result<(), Failure> {
    let (mut new, mut done): (Vec<Effect>, Vec<Effect>) = Default::default();
    for applied in &batch.applied {
        new.retain(|effect| !applied.done_effects.contains(effect));
        done.extend(&applied.done_effects);
        for effect in &applied.effects {
            let name = put_name(*effect);
            done.retain(|done| put_name(*done) != name);
            new.push(*effect);
        }
    }
    for (name, effects) in [("new_effects", new), ("done_effects", done)] {
        let rows = Rows::of(effects, |effect, row| row.put(&effects::put(effect)))?;
        to.put_rows(name, rows, RowType::Effect);
    }
    Ok(())
}

pub(super) fn put_messages(to: &mut Values, messages: &[Message]) -> Result<(), Failure> {
    let rows = Rows::of(messages, |message, row| row.put(&deliveries::put(message)))?;
    to.put_rows("message_rows", rows, RowType::Message);
    Ok(())
}
