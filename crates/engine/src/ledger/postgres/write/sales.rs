//! Holders, bookings and what is written down beside them, as values of the statement.

use soldonce_core::{Booking, BookingState, Effect, LineState, PaymentState, Timestamp};
use tokio_postgres::types::Type;

use super::Values;
use crate::ledger::postgres::batch::{Account, Batch};
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::replica::Replica;
use crate::ledger::postgres::tables::{Id, holder_key, holds, int, short};
use crate::ledger::rows::codes::number;
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
        Some(short(number(&PaymentState::ALL, payment)))
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
    let (mut kinds, mut bookings, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
    for effect in batch.applied.iter().flat_map(|applied| &applied.effects) {
        let (kind, booking, amount) = match effect {
            Effect::Capture(booking) => (0_i16, booking, None),
            Effect::Void(booking) => (1, booking, None),
            Effect::Refund { booking, amount } => (2, booking, Some(amount.minor())),
            Effect::CancelIntent(booking) => (3, booking, None),
        };
        kinds.push(kind);
        bookings.push(Id(*booking.bytes()));
        amounts.push(amount);
    }
    to.put(kinds, Type::INT2_ARRAY);
    to.put(bookings, Type::BYTEA_ARRAY);
    to.put(amounts, Type::INT8_ARRAY);
}
