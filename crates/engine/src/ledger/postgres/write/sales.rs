//! Holders, bookings and what is written down beside them, as values of the statement.

use soldonce_core::{Booking, BookingState, LineState, PaymentState, Timestamp};
use tokio_postgres::types::Type;

use super::Values;
use crate::ledger::postgres::batch::{Account, Batch};
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::replica::Replica;
use crate::ledger::postgres::tables::{Id, holder_key, holds, int, short};
use crate::ledger::rows::codes::number;
use crate::ledger::rows::effects::EffectColumns;
use crate::ledger::rows::payments::payment_to_json;
use crate::ledger::rows::{Damaged, stored};

/// $49 to $53.
pub(super) fn put_accounts(to: &mut Values, accounts: &[Account]) -> Result<(), Failure> {
    to.put(
        accounts
            .iter()
            .map(|account| account.key)
            .collect::<Vec<_>>(),
        Type::BYTEA_ARRAY,
    );
    let callers = accounts
        .iter()
        .map(|account| Id(*account.holder.caller.bytes()));
    to.put(callers.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let names = accounts
        .iter()
        .map(|account| account.holder.name.as_str().to_owned());
    to.put(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
    let bought = accounts.iter().map(|account| int(account.bought));
    to.put(bought.collect::<Result<Vec<_>, _>>()?, Type::INT4_ARRAY);
    let versions = accounts.iter().map(|account| account.version);
    to.put(versions.collect::<Vec<_>>(), Type::INT8_ARRAY);
    Ok(())
}

/// $54 to $70.
pub(super) fn put_bookings(
    to: &mut Values,
    replica: &Replica,
    batch: &Batch,
) -> Result<(), Failure> {
    let ids = batch.bookings();
    let missing = || Damaged::new("bookings", "a booking is not in memory");
    let found = ids
        .iter()
        .map(|id| replica.inventory.booking(*id).ok_or_else(missing));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    to.put(holds::booking_ids(ids), Type::BYTEA_ARRAY);
    let callers = found
        .iter()
        .map(|booking| Id(*booking.holder.caller.bytes()));
    to.put(callers.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let names = found
        .iter()
        .map(|booking| booking.holder.name.as_str().to_owned());
    to.put(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
    let keys = found.iter().map(|booking| holder_key(&booking.holder));
    to.put(keys.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let holds = found
        .iter()
        .map(|booking| booking.hold.map(|id| Id(*id.bytes())));
    to.put(holds.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let states = found
        .iter()
        .map(|booking| short(number(&BookingState::ALL, &booking.state)));
    to.put(states.collect::<Vec<_>>(), Type::INT2_ARRAY);
    let fences = found.iter().map(|booking| stored(booking.fence.0));
    to.put(fences.collect::<Result<Vec<_>, _>>()?, Type::INT8_ARRAY);
    let references = found
        .iter()
        .map(|booking| Some(booking.reference.as_ref()?.to_string()));
    to.put(references.collect::<Vec<_>>(), Type::TEXT_ARRAY);
    let payments = found.iter().map(|booking| {
        let payment = booking.payment.as_ref()?;
        Some(short(number(&PaymentState::ALL, &payment.state)))
    });
    to.put(payments.collect::<Vec<_>>(), Type::INT2_ARRAY);
    let created = found.iter().map(|booking| booking.created_at.ms());
    to.put(created.collect::<Vec<_>>(), Type::INT8_ARRAY);
    let confirmed = found
        .iter()
        .map(|booking| booking.confirmed_at.map(Timestamp::ms));
    to.put(confirmed.collect::<Vec<_>>(), Type::INT8_ARRAY);
    put_lines(to, &found)
}

fn put_lines(to: &mut Values, bookings: &[&Booking]) -> Result<(), Failure> {
    let (mut of, mut places, mut units) = (Vec::new(), Vec::new(), Vec::new());
    let (mut prices, mut versions, mut states) = (Vec::new(), Vec::new(), Vec::new());
    for booking in bookings {
        for (n, line) in (0_i32..).zip(&booking.lines) {
            of.push(Id(*booking.id.bytes()));
            places.push(n);
            units.push(int(line.unit.0)?);
            prices.push(line.price.minor());
            versions.push(stored(line.version.0)?);
            states.push(short(number(&LineState::ALL, &line.state)));
        }
    }
    to.put(of, Type::BYTEA_ARRAY);
    to.put(places, Type::INT4_ARRAY);
    to.put(units, Type::INT4_ARRAY);
    to.put(prices, Type::INT8_ARRAY);
    to.put(versions, Type::INT8_ARRAY);
    to.put(states, Type::INT2_ARRAY);
    Ok(())
}

/// $71 to $75.
pub(super) fn put_records(to: &mut Values, batch: &Batch) {
    let records = &batch.records;
    let keys = records.iter().map(|(key, _)| Id(key.scoped.0));
    to.put(keys.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let fingerprints = records.iter().map(|(key, _)| Id(key.fingerprint.0));
    to.put(fingerprints.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let kinds = records.iter().map(|(_, reply)| short(reply.kind.number()));
    to.put(kinds.collect::<Vec<_>>(), Type::INT2_ARRAY);
    let subjects = records.iter().map(|(_, reply)| Id(reply.subject));
    to.put(subjects.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let bodies = records.iter().map(|(_, reply)| reply.body.to_vec());
    to.put(bodies.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
}

/// $76 to $78.
pub(super) fn put_effects(to: &mut Values, batch: &Batch) {
    let effects = new_effects(batch);
    put_names(to, &effects);
    let amounts = effects.iter().map(|effect| effect.amount);
    to.put(amounts.collect::<Vec<_>>(), Type::INT8_ARRAY);
}

/// $85 to $89: how payments stand in detail, and effects by their totals.
pub(super) fn put_payments(
    to: &mut Values,
    replica: &Replica,
    batch: &Batch,
) -> Result<(), Failure> {
    let details = batch.bookings().into_iter().map(|id| {
        let booking = replica.inventory.booking(id);
        let payment = booking.and_then(|booking| booking.payment.as_ref());
        payment.map(|payment| payment_to_json(payment)).transpose()
    });
    to.put(details.collect::<Result<Vec<_>, _>>()?, Type::TEXT_ARRAY);
    put_totals(to, &new_effects(batch));
    let settled = batch.applied.iter().flat_map(|applied| &applied.settled);
    let settled: Vec<_> = settled.copied().map(EffectColumns::of).collect();
    put_names(to, &settled);
    put_totals(to, &settled);
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

fn put_names(to: &mut Values, effects: &[EffectColumns]) {
    let kinds = effects.iter().map(|effect| effect.kind);
    to.put(kinds.collect::<Vec<_>>(), Type::INT2_ARRAY);
    let bookings = effects.iter().map(|effect| Id(*effect.booking.bytes()));
    to.put(bookings.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
}

fn put_totals(to: &mut Values, effects: &[EffectColumns]) {
    let totals = effects.iter().map(|effect| effect.total);
    to.put(totals.collect::<Vec<_>>(), Type::INT8_ARRAY);
}
