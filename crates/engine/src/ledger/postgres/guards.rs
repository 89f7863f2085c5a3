//! What the database refuses by itself: the keys and checks of its tables, all of `guards.sql`, and
//! the function that stores a batch. No statement notices one that is missing, switched off or of
//! another form, and the database refuses less. Checks are known by their names.

use std::collections::{BTreeMap, BTreeSet};

use super::OpenError;
use super::database::Connection;
use super::failure::Failure;
use super::tables::Columns;

/// SQL of the index, functions and triggers by which the database refuses. Can be run again.
pub(super) const GUARDS: &str = include_str!("guards.sql");

/// SQL of functions that a server calls or a trigger runs. Of two with one name the later counts.
const WITH_FUNCTIONS: [&str; 3] = [
    include_str!("../../../migrations/postgres/V12__store_batch.sql"),
    include_str!("../../../migrations/postgres/V14__dropped_events.sql"),
    GUARDS,
];

/// Selects guards that are missing: keys by table, columns and condition, and checks by table.
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
                    AND i.indisvalid AND i.indisunique AND i.indexprs IS NULL
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

/// Functions of the ledger, with their bodies.
const FUNCTIONS: &str = "-- functions
SELECT proname, prosrc FROM pg_proc WHERE pronamespace = quote_ident(current_schema())::regnamespace";

/// Triggers that are at work, and whether their functions look up tables of the ledger alone.
const TRIGGERS: &str = "-- triggers
SELECT pg_get_triggerdef(t.oid, true),
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
    let mut functions = functions();
    for row in connection.rows(FUNCTIONS, &[]).await? {
        let columns = Columns::new(&row, "guards");
        let (name, body): (&str, &str) = (columns.get(0)?, columns.get(1)?);
        if functions.get(name) == Some(&body) {
            functions.remove(name);
        }
    }
    missing.extend(functions.into_keys().map(str::to_owned));
    let mut at_work = BTreeSet::new();
    for row in connection.rows(TRIGGERS, &[]).await? {
        let columns = Columns::new(&row, "guards");
        let looks_here: Option<bool> = columns.get(1)?;
        if looks_here == Some(true) {
            at_work.insert(plain(columns.get(0)?));
        }
    }
    let lacks = triggers().filter(|(_, text)| !at_work.contains(&plain(&format!("CREATE{text}"))));
    missing.extend(lacks.map(|(name, _)| name.to_owned()));
    Ok(missing)
}

/// Fails unless the database has all of the guards.
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

/// Parses the triggers of `guards.sql`: name, and the text after `CREATE`.
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

/// Parses the functions that must be there: name and body.
fn functions() -> BTreeMap<&'static str, &'static str> {
    let made = WITH_FUNCTIONS
        .iter()
        .flat_map(|text| text.split("\nCREATE "));
    let functions = made.filter_map(|text| {
        let text = text.strip_prefix("OR REPLACE ").unwrap_or(text);
        let (name, rest) = text.strip_prefix("FUNCTION ")?.split_once('(')?;
        Some((name, rest.split("$$").nth(1)?))
    });
    functions.collect()
}

/// Normalizes a trigger's text: versions of PostgreSQL differ in case, spaces and parentheses.
fn plain(text: &str) -> String {
    let all = text.chars();
    let kept = all.filter(|c| !c.is_whitespace() && !"()".contains(*c));
    kept.flat_map(char::to_lowercase).collect()
}
