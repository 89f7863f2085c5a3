//! What the database refuses by itself: the keys and checks of its tables, and all of `guards.sql`. One that is
//! missing or switched off is noticed by no statement, and the database refuses less.

use super::OpenError;
use super::database::Connection;
use super::failure::Failure;
use super::tables::Columns;

const MISSING: &str = "-- missing_guards
SELECT name FROM unnest(ARRAY['sold_unit_key', 'audit_pkey', 'units_pkey', 'batches_pkey',
                              'idempotency_pkey', 'holders_pkey', 'feed_batch_key', 'holds_pkey',
                              'bookings_pkey', 'lines_pkey', 'events_pkey', 'events_id_key',
                              'feed_event_no_first_seq_key']) AS name
WHERE NOT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
                  WHERE c.relname = name AND pg_table_is_visible(c.oid)
                    AND i.indisvalid AND i.indisunique)
UNION ALL
SELECT name FROM unnest(ARRAY['units_check', 'units_state_check', 'holds_state_check',
                              'bookings_state_check', 'lines_state_check', 'audit_step']) AS name
WHERE NOT EXISTS (SELECT FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
                  WHERE k.conname = name AND pg_table_is_visible(c.oid) AND k.convalidated)
UNION ALL
SELECT name FROM unnest(ARRAY['units_begin_free', 'units_stay', 'units_only_rise', 'units_sold_only_free',
                              'units_owner', 'lines_sold_stay', 'lines_are_kept',
                              'audit_only_grows']) AS name
WHERE NOT EXISTS (SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                  WHERE t.tgname = name AND pg_table_is_visible(c.oid)
                    AND t.tgenabled IN ('O', 'A'))";

/// Returns the names of the guards that are missing or switched off.
///
/// # Errors
/// [`Failure`], when the database does not answer.
pub(super) async fn missing(connection: &mut Connection) -> Result<Vec<String>, Failure> {
    let rows = connection.rows(MISSING, &[]).await?;
    let names = rows.iter().map(|row| Columns::new(row, "guards").get(0));
    Ok(names.collect::<Result<_, _>>()?)
}

/// Passes a database that has all of them.
///
/// # Errors
/// [`OpenError`], which says what to do.
pub(super) async fn require(connection: &mut Connection) -> Result<(), OpenError> {
    match missing(connection).await?.as_slice() {
        [] => Ok(()),
        missing => Err(OpenError::Guards {
            missing: missing.join("`, `"),
        }),
    }
}
