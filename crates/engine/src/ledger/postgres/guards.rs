//! What the database refuses by itself: the keys and checks of its tables, and all of `guards.sql`. One that is
//! missing, switched off or of another form is noticed by no statement, and the database refuses less.

use std::collections::{BTreeMap, BTreeSet};

use super::OpenError;
use super::database::Connection;
use super::failure::Failure;
use super::tables::Columns;

/// What the database refuses by itself. Can be run again.
pub(super) const GUARDS: &str = include_str!("guards.sql");

/// Keys by table, columns and condition, and checks by table.
const MISSING: &str = "-- missing_guards
SELECT name FROM (VALUES ('units_pkey', 'units', 'event_no unit_no', NULL),
                         ('lines_pkey', 'lines', 'booking n', NULL),
                         ('sold_unit_key', 'lines', 'event_no unit_no', '(state = 1)'),
                         ('holds_pkey', 'holds', 'id', NULL),
                         ('bookings_pkey', 'bookings', 'id', NULL),
                         ('holders_pkey', 'holders', 'event_no key', NULL),
                         ('audit_pkey', 'audit', 'event_no unit_no version', NULL),
                         ('idempotency_pkey', 'idempotency', 'key', NULL),
                         ('events_pkey', 'events', 'event_no', NULL),
                         ('events_id_key', 'events', 'id', NULL),
                         ('dropped_events_pkey', 'dropped_events', 'event_no', NULL),
                         ('dropped_events_n_key', 'dropped_events', 'n', NULL),
                         ('batches_pkey', 'batches', 'id', NULL),
                         ('feed_batch_key', 'feed', 'batch', NULL),
                         ('feed_event_no_first_seq_key', 'feed', 'event_no first_seq', NULL)
                 ) AS key (name, its_table, its_columns, condition)
WHERE NOT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
                  WHERE c.relname = name AND i.indrelid = to_regclass(its_table)
                    AND i.indisvalid AND i.indisunique
                    AND pg_get_expr(i.indpred, i.indrelid) IS NOT DISTINCT FROM condition
                    AND (SELECT string_agg(a.attname, ' ' ORDER BY of_key.n)
                         FROM unnest(i.indkey) WITH ORDINALITY AS of_key (attnum, n)
                         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = of_key.attnum) = its_columns)
UNION ALL
SELECT name FROM (VALUES ('units_check', 'units'), ('units_state_check', 'units'), ('holds_state_check', 'holds'),
                         ('bookings_state_check', 'bookings'), ('lines_state_check', 'lines'),
                         ('audit_step', 'audit')) AS guard (name, its_table)
WHERE NOT EXISTS (SELECT FROM pg_constraint k
                  WHERE k.conname = name AND k.conrelid = to_regclass(its_table) AND k.convalidated)
UNION ALL
SELECT 'session_replication_role = replica: no trigger' WHERE current_setting('session_replication_role') = 'replica'";

/// Triggers that are at work, with the functions that they call.
const TRIGGERS: &str = "-- triggers
SELECT pg_get_triggerdef(t.oid, true), p.proname, p.prosrc,
       p.proconfig @> ARRAY['search_path=' || quote_ident(current_schema()) || ', pg_temp']
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND pg_table_is_visible(c.oid)";

/// Returns the names of the guards that are missing, switched off or of another form.
///
/// # Errors
/// [`Failure`], when the database does not answer.
pub(super) async fn missing(connection: &mut Connection) -> Result<Vec<String>, Failure> {
    let rows = connection.rows(MISSING, &[]).await?;
    let names = rows.iter().map(|row| Columns::new(row, "guards").get(0));
    let mut missing = names.collect::<Result<Vec<String>, _>>()?;
    let bodies: BTreeMap<_, _> = functions().collect();
    let mut at_work = BTreeSet::new();
    for row in connection.rows(TRIGGERS, &[]).await? {
        let columns = Columns::new(&row, "guards");
        let (function, body): (&str, &str) = (columns.get(1)?, columns.get(2)?);
        let looks_here: Option<bool> = columns.get(3)?;
        if looks_here == Some(true) && bodies.get(function) == Some(&body) {
            at_work.insert(plain(columns.get(0)?));
        }
    }
    let lacks = triggers().filter(|(_, text)| !at_work.contains(&plain(&format!("CREATE{text}"))));
    missing.extend(lacks.map(|(name, _)| name.to_owned()));
    Ok(missing)
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

/// The triggers of `guards.sql`: name, and text behind `CREATE`.
fn triggers() -> impl Iterator<Item = (&'static str, &'static str)> {
    let made = GUARDS
        .split(";\n")
        .filter_map(|text| text.rsplit_once("CREATE"));
    made.filter_map(|(_, text)| {
        let (kind, rest) = text.split_once("TRIGGER ")?;
        let is_trigger = matches!(kind, " " | " CONSTRAINT ");
        Some((rest.split(' ').next()?, text)).filter(|_| is_trigger)
    })
}

/// The functions of `guards.sql`: name and body.
fn functions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let texts = GUARDS.split("OR REPLACE FUNCTION ").skip(1);
    texts.filter_map(|text| {
        let (name, rest) = text.split_once('(')?;
        Some((name, rest.split("$$").nth(1)?))
    })
}

/// A trigger's text without what versions of PostgreSQL write differently: case, spaces, parentheses.
fn plain(text: &str) -> String {
    let kept = text
        .chars()
        .filter(|c| !c.is_whitespace() && !"()".contains(*c));
    kept.flat_map(char::to_lowercase).collect()
}
