//! Reads the facts about a ledger's database that `soldonce doctor` needs. Judges nothing.

use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::{Clock, SystemClock};

use super::address::Serves;
use super::database::Database;
use super::failure::Failure;
use super::feed::unnumbered;
use super::tables::Columns;
use super::{OpenError, PostgresOptions, schema};

const EXAMINED: &str = "-- examined
SELECT current_setting('server_version'), current_setting('server_version_num')::integer,
       pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'),
       current_setting('synchronous_commit'), current_setting('data_checksums'),
       current_setting('max_connections')::integer
           - current_setting('superuser_reserved_connections')::integer,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::integer,
       floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
       current_setting('synchronous_standby_names'),
       (SELECT count(*) FROM pg_stat_replication)::integer,
       current_setting('default_transaction_read_only') = 'on'";

/// Privileges that a server needs and this user lacks; without tables, those that `migrate` needs.
const LACKING: &str = "-- lacking
SELECT string_agg(lacking, ', ' ORDER BY lacking) FROM (
    SELECT privilege || ' on ' || name AS lacking
    FROM unnest(ARRAY['bookings', 'holds', 'units']) AS name,
         unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) AS privilege
    WHERE to_regclass(name) IS NOT NULL AND NOT has_table_privilege(to_regclass(name), privilege)
    UNION ALL
    SELECT 'CREATE on schema ' || coalesce(current_schema(), 'public')
    WHERE to_regclass('units') IS NULL
      AND NOT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)) AS found";

/// How old the oldest batch is that has no number, and how far the ledger's clock is ahead of the
/// machine's, milliseconds.
const WAITING: &str = concat!(
    "-- waiting
SELECT (ledger_clock() - min(b.at))::bigint,
       greatest((SELECT at FROM clock), ledger_clock())
           - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
FROM batches b WHERE ",
    unnumbered!()
);

/// Whether a database takes commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseRole {
    Primary,
    /// A primary with `default_transaction_read_only`, which takes none.
    ReadOnly,
    /// It only replays what another server writes.
    Standby,
}

/// A ledger's database, as it was found.
#[derive(Clone, Debug)]
pub struct Examination {
    pub version: String,
    /// Its `server_version_num`: 150004 is 15.4.
    pub version_number: i32,
    pub role: DatabaseRole,
    /// Settings that a durable commit rests on, with their values.
    pub durability: Vec<(&'static str, String)>,
    /// Which standbys a commit waits for; empty is none.
    pub standbys_awaited: String,
    /// How many standbys are connected.
    pub standbys: i32,
    /// Whether pages have checksums: `on` or `off`.
    pub checksums: String,
    /// The limit of connections of all users together, without those reserved for superusers.
    pub connections_max: i32,
    /// How many connections are in use.
    pub connections_taken: i32,
    /// The version of the ledger's schema; 0 if there is none.
    pub schema: i64,
    /// The newest schema of this program.
    pub schema_known: i64,
    /// The privileges that a server needs and the user lacks.
    pub lacking: Option<String>,
    /// How long ago the oldest commit was made that has no number yet, if one waits.
    pub waiting_ms: Option<i64>,
    /// How far the ledger's clock is ahead of the database's because that one stepped back,
    /// milliseconds.
    pub ledger_ahead_ms: i64,
    /// The time of one statement and its answer, on an open connection.
    pub round_trip: Duration,
    /// How far the database's clock is ahead of this machine's, milliseconds, give or take a round
    /// trip.
    pub clock_ahead_ms: i64,
}

/// Examines the database of a ledger.
///
/// # Errors
/// [`OpenError`] when it cannot be reached, or the statements are not taken.
///
/// # Cancel safety
/// It only reads.
pub async fn examine(options: &PostgresOptions) -> Result<Examination, OpenError> {
    let clock = SystemClock;
    let database = Database::new(options, Serves::Any, Arc::new(clock))?;
    let mut connection = database.connection().await?;
    // The first time a statement is prepared, too.
    connection.rows(EXAMINED, &[]).await?;
    let begun = clock.boot();
    let rows = connection.rows(EXAMINED, &[]).await?;
    let round_trip = clock.boot().since(begun);
    let here = clock.wall_ms();
    let nothing = || Failure::Unknown("no row came".to_owned());
    let columns = Columns::new(rows.first().ok_or_else(nothing)?, "pg_settings");
    let setting = |name, at| Ok::<_, OpenError>((name, columns.get::<String>(at)?));
    let there: i64 = columns.get(9)?;
    let schema = schema::version(&mut connection).await?;
    let rows = connection.rows(LACKING, &[]).await?;
    let lacking = Columns::new(rows.first().ok_or_else(nothing)?, "privileges");
    let lacking: Option<String> = lacking.get(0)?;
    let (mut waiting_ms, mut ledger_ahead_ms) = (None, 0);
    if schema == schema::SCHEMA && lacking.is_none() {
        let rows = connection.rows(WAITING, &[]).await?;
        let columns = Columns::new(rows.first().ok_or_else(nothing)?, "batches");
        (waiting_ms, ledger_ahead_ms) = (columns.get(0)?, columns.get(1)?);
    }
    Ok(Examination {
        version: columns.get(0)?,
        version_number: columns.get(1)?,
        role: match (columns.get(2)?, columns.get(12)?) {
            (true, _) => DatabaseRole::Standby,
            (false, true) => DatabaseRole::ReadOnly,
            (false, false) => DatabaseRole::Primary,
        },
        durability: vec![
            setting("fsync", 3)?,
            setting("full_page_writes", 4)?,
            setting("synchronous_commit", 5)?,
        ],
        standbys_awaited: columns.get(10)?,
        standbys: columns.get(11)?,
        checksums: columns.get(6)?,
        connections_max: columns.get(7)?,
        connections_taken: columns.get(8)?,
        schema,
        schema_known: schema::SCHEMA,
        lacking,
        waiting_ms,
        ledger_ahead_ms,
        round_trip,
        clock_ahead_ms: there.saturating_sub(here),
    })
}
