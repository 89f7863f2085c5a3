//! The doctor's checks of a PostgreSQL server. `lease.md` 8.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{Postgres, pooling, schema};
use crate::BackendError;
use crate::backend::{Finding, Verdict};

const SETTINGS: &str = "\
-- doctor_settings
SELECT pg_is_in_recovery(), current_setting('server_version_num')::integer,
    current_setting('server_version'), current_setting('fsync'),
    current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
    (SELECT count(*) FROM pg_stat_replication), current_setting('default_transaction_isolation')";

const WALL: &str = "\
-- doctor_wall
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const EPOCH: &str = "\
-- doctor_epoch
SELECT coalesce(max(epoch), 0) FROM soldonce_lease_epoch WHERE ns = $1";

/// Oldest version that is still maintained.
const VERSION_MIN: i32 = 140_000;

/// A larger clock skew confuses people who compare logs.
const OFFSET_MAX: Duration = Duration::from_secs(1);

struct Settings {
    in_recovery: bool,
    version_number: i32,
    version: String,
    fsync: String,
    commit: String,
    synchronous: String,
    standbys: i64,
    isolation: String,
}

impl Settings {
    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            in_recovery: row.try_get(0)?,
            version_number: row.try_get(1)?,
            version: row.try_get(2)?,
            fsync: row.try_get(3)?,
            commit: row.try_get(4)?,
            synchronous: row.try_get(5)?,
            standbys: row.try_get(6)?,
            isolation: row.try_get(7)?,
        })
    }
}

pub(super) async fn examine(backend: &Postgres) -> Vec<Finding> {
    let rows = match backend.settling.query(SETTINGS, &[]).await {
        Ok(rows) => rows,
        Err(error) => return vec![unreachable(&error)],
    };
    let Some(Ok(settings)) = rows.first().map(Settings::read) else {
        return vec![unreachable(&super::garbled("settings"))];
    };
    let mut findings = vec![
        role(&settings),
        version(&settings),
        durability(&settings),
        standbys(&settings),
        isolation(&settings),
    ];
    findings.extend(clocks(backend).await);
    findings.push(tables(backend).await);
    findings.extend(epochs(backend).await);
    findings.push(pooling::examine(backend).await);
    findings
}

fn unreachable(error: &BackendError) -> Finding {
    let fix = "see that the server runs, takes connections from here, and lets this user in";
    Finding::new("server answers", Verdict::Fail, error.to_string(), fix)
}

fn role(settings: &Settings) -> Finding {
    let found = if settings.in_recovery {
        "in recovery: a standby"
    } else {
        "primary"
    };
    let fix = "give the address of the primary; a standby cannot grant";
    let check = ("role is primary", !settings.in_recovery, Verdict::Fail);
    Finding::judged(check, found, fix)
}

fn version(settings: &Settings) -> Finding {
    let is_tested = settings.version_number >= VERSION_MIN;
    let fix = "update to PostgreSQL 14 or later; nothing older is tested";
    let check = ("server version", is_tested, Verdict::Warn);
    Finding::judged(check, settings.version.as_str(), fix)
}

/// Checks whether a crash can lose commits that were answered.
fn durability(settings: &Settings) -> Finding {
    let (fsync, commit) = (&settings.fsync, &settings.commit);
    let is_durable = fsync == "on";
    let mut found = format!("fsync {fsync}, synchronous_commit {commit}");
    if is_durable && commit == "off" {
        found.push_str("; grants and renewals switch it on for themselves");
    }
    let fix = "set fsync = on: after a power cut leases may be granted twice and tokens fall";
    let check = ("commits are durable", is_durable, Verdict::Fail);
    Finding::judged(check, found, fix)
}

/// Checks whether a promotion can lose commits that were answered.
fn standbys(settings: &Settings) -> Finding {
    let check = "standbys are synchronous";
    let fix = "set synchronous_standby_names and synchronous_commit = on; or accept that leases \
                granted just before a promotion may be granted twice, and keep the gate";
    let found = format!(
        "{} connected, synchronous_standby_names = '{}', synchronous_commit = {}",
        settings.standbys, settings.synchronous, settings.commit
    );
    let waits = matches!(settings.commit.as_str(), "on" | "remote_apply" | "off");
    match (settings.standbys, settings.synchronous.is_empty()) {
        (0, true) => Finding::new(check, Verdict::Ok, "no standby connected", ""),
        (_, false) if waits => Finding::new(check, Verdict::Ok, found, ""),
        _ => Finding::new(check, Verdict::Warn, found, fix),
    }
}

fn isolation(settings: &Settings) -> Finding {
    let found = settings.isolation.as_str();
    let fix = "set default_transaction_isolation = 'read committed' for this user; a stricter \
                level turns contention into refusals without a named holder";
    let is_usual = found == "read committed";
    Finding::judged(("isolation level", is_usual, Verdict::Warn), found, fix)
}

/// Measures the round trip on an open connection, and the clock skew. Empty without an answer.
async fn clocks(backend: &Postgres) -> Vec<Finding> {
    let begun = backend.clock.boot();
    let Ok(rows) = backend.settling.query(WALL, &[]).await else {
        return Vec::new();
    };
    let took = backend.clock.boot().since(begun);
    let here = backend.clock.wall_ms();
    let server = rows.first().and_then(|row| row.try_get(0).ok());
    let server: i64 = server.unwrap_or(here);
    let apart = Duration::from_millis(here.abs_diff(server)).saturating_sub(took);
    let fix = "synchronise the clocks; leases do not need it, logs and people do";
    let check = ("wall clocks agree", apart <= OFFSET_MAX, Verdict::Warn);
    let agree = Finding::judged(check, format!("{} ms apart", apart.as_millis()), fix);
    vec![Finding::round_trip(took), agree]
}

async fn tables(backend: &Postgres) -> Finding {
    let check = "lease tables";
    let fix = "call postgres::migrate once, as a user who may create tables";
    match schema::installed(&backend.settling).await {
        Ok(Some(schema::VERSION)) => Finding::new(check, Verdict::Ok, "installed", ""),
        Ok(Some(other)) => {
            let found = format!("version {other}, this client knows {}", schema::VERSION);
            Finding::new(check, Verdict::Fail, found, fix)
        }
        Ok(None) => Finding::new(check, Verdict::Fail, "not installed", fix),
        Err(error) => Finding::new(check, Verdict::NotVerifiable, error.to_string(), ""),
    }
}

/// Counts the epochs that are left; `None` if that cannot be read, as before `migrate`.
async fn epochs(backend: &Postgres) -> Option<Finding> {
    let params = [(&backend.namespace.as_str() as _, Type::TEXT)];
    let rows = backend.settling.query(EPOCH, &params).await.ok()?;
    let epoch: i32 = rows.first()?.try_get(0).ok()?;
    u32::try_from(epoch).ok().map(Finding::epochs_left)
}
