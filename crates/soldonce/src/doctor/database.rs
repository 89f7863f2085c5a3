//! The database of a ledger that many servers share.

use soldonce_engine::ledger::postgres::{DatabaseRole, Examination, PostgresOptions, examine};

use super::{Finding, clock};
use crate::block_on;

/// The oldest PostgreSQL that its developers still maintain, as `server_version_num`.
const VERSION_LEAST: i32 = 150_000;
/// Connections that one server opens by default.
const CONNECTIONS_WANTED: i32 = 8;
/// Accepted clock skew: a server's estimate of the database's clock may be off by it at a commit.
const CLOCK_OFF_MS: u64 = 250;
/// Longest good round trip: every commit waits for one at least.
const ROUND_TRIP_MS: u128 = 5;
/// Age of a commit without a number that is reported: most get theirs within some tens of ms.
const WAITING_MS: i64 = 5_000;

/// Examines the database. One that cannot be reached is a finding, too.
pub(super) fn look(url: &str) -> anyhow::Result<Vec<Finding>> {
    let options = PostgresOptions::new(url);
    Ok(match block_on(examine(&options))? {
        Ok(found) => judge(&found),
        Err(error) => vec![unreachable(&error.to_string())],
    })
}

fn unreachable(error: &str) -> Finding {
    let advice = if error.contains("startup parameter") || error.contains("prepared statement") {
        "a pool in transaction mode is between: give servers `--database-statements unprepared`, \
         and `doctor` and `migrate` the direct address"
    } else {
        "see that it runs, takes connections from here, and lets this user in"
    };
    Finding::wrong("database", error.to_owned(), advice)
}

fn judge(found: &Examination) -> Vec<Finding> {
    let mut findings = vec![version(found), role(found)];
    findings.extend(found.durability.iter().map(|(name, value)| {
        let shown = value.clone();
        if value == "off" {
            let advice = "set it to on: what is acknowledged may be lost in a crash";
            return Finding::wrong(name, shown, advice);
        }
        Finding::good(name, shown)
    }));
    findings.push(standbys(found));
    findings.push(checksums(found));
    findings.push(connections(found));
    findings.push(schema(found));
    findings.extend(privileges(found));
    findings.extend(numbers(found));
    findings.extend(times(found));
    findings
}

fn version(found: &Examination) -> Finding {
    let advice = "update to 15 or later: nothing older is tested";
    let advice = (found.version_number < VERSION_LEAST).then_some(advice);
    Finding::remark_if("PostgreSQL", found.version.clone(), advice)
}

fn role(found: &Examination) -> Finding {
    let what = "role";
    match found.role {
        DatabaseRole::Primary => Finding::good(what, "primary"),
        DatabaseRole::ReadOnly => {
            let shown = "primary, and default_transaction_read_only is on";
            let advice =
                "set it to off: no command is taken. A provider sets it when storage is full";
            Finding::wrong(what, shown, advice)
        }
        DatabaseRole::Standby => {
            let advice = "give the address of the primary: a standby takes no commands (`verify` may use it)";
            Finding::wrong(what, "standby", advice)
        }
    }
}

/// Judges the standbys that a commit waits for, after the primary's own disk.
fn standbys(found: &Examination) -> Finding {
    let (what, awaited) = ("synchronous standbys", found.standbys_awaited.clone());
    let waits = found
        .durability
        .iter()
        .any(|(name, value)| *name == "synchronous_commit" && value != "local");
    if awaited.is_empty() {
        let shown = format!("none is waited for, {} connected", found.standbys);
        return Finding::good(what, shown);
    }
    if !waits {
        let advice = "set synchronous_commit to on: with `local` no commit waits for them";
        return Finding::wrong(what, awaited, advice);
    }
    if found.standbys == 0 {
        let shown = format!("{awaited}: none is connected");
        let advice = "bring one up: until then every command waits, and is answered as unknown";
        return Finding::wrong(what, shown, advice);
    }
    Finding::good(what, awaited)
}

fn checksums(found: &Examination) -> Finding {
    let what = "data checksums";
    if found.checksums == "on" {
        return Finding::good(what, "on");
    }
    let advice = "switch them on (`pg_checksums --enable` while it is stopped): a damaged page is \
                found when it is read, not by `verify` alone";
    Finding::remark(what, "off", advice)
}

fn connections(found: &Examination) -> Finding {
    let most = found.connections_max;
    let free = most.saturating_sub(found.connections_taken);
    let advice = "a server takes 8: raise max_connections, or lower --database-connections";
    let advice = (free < CONNECTIONS_WANTED).then_some(advice);
    Finding::remark_if("connections", format!("{free} of {most} are free"), advice)
}

fn schema(found: &Examination) -> Finding {
    let what = "ledger tables";
    let known = found.schema_known;
    match found.schema {
        0 => {
            let advice =
                "none is needed for leases alone; for a ledger run `soldonce migrate` once";
            Finding::remark(what, "not there", advice)
        }
        schema if schema == known => Finding::good(what, format!("schema {schema}")),
        schema if schema < known => {
            let shown = format!("schema {schema}, this program knows {known}");
            Finding::wrong(what, shown, "run `soldonce migrate`")
        }
        schema => {
            let shown = format!("schema {schema}, this program knows {known}");
            let advice = "this program is older than the database: start a newer soldonce";
            Finding::wrong(what, shown, advice)
        }
    }
}

fn privileges(found: &Examination) -> Option<Finding> {
    let lacking = found.lacking.as_ref()?;
    let advice = "give this user a database of its own: CREATE DATABASE soldonce OWNER the_user";
    let shown = format!("without {lacking}");
    Some(Finding::wrong("privileges", shown, advice))
}

fn numbers(found: &Examination) -> Option<Finding> {
    let waiting = found.waiting_ms.filter(|ms| *ms > WAITING_MS)?;
    let advice = "a server must run; and end transactions that have been open for as long";
    let shown = format!("the oldest commit without a number is {waiting} ms old");
    Some(Finding::remark("feed", shown, advice))
}

fn times(found: &Examination) -> [Finding; 3] {
    let (apart, trip) = (found.clock_ahead_ms.unsigned_abs(), found.round_trip);
    let nearer = "every commit waits for one: bring servers and database together";
    let nearer = (trip.as_millis() > ROUND_TRIP_MS).then_some(nearer);
    let together =
        "the ledger goes by the database's clock; synchronise both, for people who read logs";
    let together = (apart > CLOCK_OFF_MS).then_some(together);
    let (trip, apart) = (trip.as_micros(), format!("{apart} ms from this machine's"));
    [
        Finding::remark_if("round trip", format!("{trip} us"), nearer),
        Finding::remark_if("database clock", apart, together),
        clock::judge(found.ledger_ahead_ms, "the database's"),
    ]
}
