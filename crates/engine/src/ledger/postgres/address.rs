//! Parses the address of a database: how to connect, and to which of its servers.

use std::net::IpAddr;
use std::time::Duration;

use soldonce_tls::postgres::{self as tls, PgTls, Protection};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use super::limits::{ANSWER_MS, LOCK_MS};
use super::{OpenError, PostgresOptions, Statements};

/// Read committed: a statement that waited for a row lock must decide by the row's new version.
/// Every statement must find its rows by a key, in the order of its lists, also with a plan made
/// once, before the tables had grown. JIT compilation takes seconds and saves nothing.
const SESSION: &str = "-c default_transaction_isolation=read\\ committed \
                       -c plan_cache_mode=force_generic_plan -c enable_seqscan=off \
                       -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off \
                       -c enable_memoize=off -c jit=off";

/// Idle time of a connection before its first TCP keepalive, unless the address sets it.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The driver's own idle time, which it has when the address sets none.
const KEEPALIVE_UNSET: Duration = Duration::from_hours(2);

/// Which servers of a database may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    /// The primary alone: a standby shows old state, and no decision may rest on that.
    Primary,
    /// A standby, too: for callers that only read.
    Any,
}

/// Builds the driver's configuration and the settings of TLS from the options.
///
/// # Errors
/// `Address` for an illegal address, or one that names files for TLS which cannot be used.
pub(super) fn config(
    options: &PostgresOptions,
    serves: Serves,
) -> Result<(Config, PgTls), OpenError> {
    // The text of this error holds no password.
    let read = tls::read(&options.url).map_err(|error| OpenError::Address(error.to_string()))?;
    let (mut config, tls) = (read.config, read.tls);
    if config.get_application_name().is_none() {
        config.application_name("soldonce");
    }
    if serves == Serves::Primary || config.get_hosts().len() > 1 {
        // Each new connection asks for the role: the address may lead elsewhere by then. Of several
        // hosts the primary is meant. One that becomes a standby restarts, and ends them all.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    if options.statements == Statements::Prepared {
        // A pool between us and the server may refuse options, so only without one.
        let asked = config.get_options().unwrap_or_default();
        config.options(format!(
            // `tcp_user_timeout`: nor are locks kept for a client that takes no more answers.
            "{asked} {SESSION} -c lock_timeout={LOCK_MS} -c tcp_user_timeout={ANSWER_MS}"
        ));
    }
    config.connect_timeout(Duration::from_millis(ANSWER_MS));
    if config.get_keepalives_idle() >= KEEPALIVE_UNSET {
        // The connection that was used last is used next, so others may be idle for hours, and
        // devices between us and the server drop such connections.
        config.keepalives_idle(KEEPALIVE);
    }
    Ok((config, tls))
}

/// Returns a host of another machine that a database's address names without `sslmode=verify-full`
/// or `verify-ca`: what is sent there may be read by others, or reach another server. None if there
/// is no such host, and for an address that cannot be read.
pub fn unverified_host(url: &str) -> Option<String> {
    let read = tls::read(url).ok()?;
    if read.protection == Protection::Verified {
        return None;
    }
    let config = read.config;
    if let Some(address) = config.get_hostaddrs().iter().find(|ip| !ip.is_loopback()) {
        return Some(address.to_string());
    }
    if !config.get_hostaddrs().is_empty() {
        return None;
    }
    config.get_hosts().iter().find_map(|host| match host {
        Host::Tcp(name) if is_remote(name) => Some(name.clone()),
        Host::Tcp(_) | Host::Unix(_) => None,
    })
}

/// Tells whether a host is another machine: neither `localhost` nor a loopback address.
pub fn is_remote(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => !address.to_canonical().is_loopback(),
        Err(_) => !host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_another_machine_is_found() {
        for (url, remote) in [
            ("postgres://app:word@db.example/main", Some("db.example")),
            ("postgres://127.0.0.1,10.0.0.7:5433/main", Some("10.0.0.7")),
            ("host=[fd00::1] dbname=main", Some("[fd00::1]")),
            ("host=near hostaddr=127.0.0.1 dbname=main", None),
            ("host=near hostaddr=10.0.0.7 dbname=main", Some("10.0.0.7")),
            ("postgres://localhost/main", None),
            ("postgres://127.0.0.9/main", None),
            ("host=::1 dbname=main", None),
            ("host=/run/postgresql dbname=main", None),
            (
                "postgres://db.example/main?sslmode=require",
                Some("db.example"),
            ),
            ("nonsense", None),
        ] {
            assert_eq!(unverified_host(url).as_deref(), remote, "{url}");
        }
    }
}
