//! The address of the PostgreSQL server, and how it is used.

use std::fmt;

use tokio_postgres::Client;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use super::tls::{self, Tls};
use crate::BackendError;

pub(super) const PORT: u16 = 5_432;

/// The default of [`PgConfig::connections`].
const CONNECTIONS: usize = 4;

/// Most connections that acquire.
const CONNECTIONS_MAX: usize = 64;

/// The address and the use of the PostgreSQL server. Works through `PgBouncer` in transaction mode,
/// except for [`PgConfig::notify`]. With the feature `tls`, `sslmode`, `sslrootcert`, `sslcert` and
/// `sslkey` of an address are those of libpq; without it connections are not encrypted.
#[derive(Clone)]
pub struct PgConfig {
    pub(super) driver: tokio_postgres::Config,
    tls: Tls,
    pub(super) connections: usize,
    pub(super) notify: bool,
}

impl PgConfig {
    /// Parses an address: `postgres://user:password@host:5432/database`, or `host=.. user=..
    /// dbname=..`. Of several hosts the one that takes writes is used.
    ///
    /// # Errors
    /// [`BackendError::Config`] when the text is neither, asks for encryption that is not
    /// available, or names files that cannot be used.
    pub fn url(url: &str) -> Result<Self, BackendError> {
        // The error text holds no password.
        let read = tls::read(url);
        let (mut driver, tls) =
            read.map_err(|why| BackendError::Config(format!("PostgreSQL address: {why}")))?;
        if driver.get_application_name().is_none() {
            driver.application_name("soldonce-lease");
        }
        if driver.get_hosts().len() > 1 {
            driver.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Ok(Self {
            driver,
            tls,
            connections: CONNECTIONS,
            notify: false,
        })
    }

    /// Sets the password.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.driver.password(password);
        self
    }

    /// Sets how many connections acquire, 1 to 64; the default is 4. Names are spread over them,
    /// and each opens when it is first needed. One more renews and releases.
    #[must_use]
    pub fn connections(mut self, count: usize) -> Self {
        self.connections = count.clamp(1, CONNECTIONS_MAX);
        self
    }

    /// Notifies waiters of a release by NOTIFY, on one more connection, which must be direct. Every
    /// process must enable it. Off by default: NOTIFY takes a lock of the whole server at commit.
    #[must_use]
    pub fn notify(mut self) -> Self {
        self.notify = true;
        self
    }

    pub(super) async fn connect(&self) -> Result<(Client, tls::Connection), tokio_postgres::Error> {
        tls::connect(&self.driver, self.tls()).await
    }

    #[cfg_attr(
        not(feature = "tls"),
        expect(clippy::clone_on_copy, reason = "without TLS it is a mark")
    )]
    pub(super) fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Returns host and port of each server, without a login.
    pub(super) fn address(&self) -> String {
        let mut ports = self.driver.get_ports().iter().copied().cycle();
        let hosts = self.driver.get_hosts().iter().map(|host| {
            let host = match host {
                Host::Tcp(name) => name.clone(),
                Host::Unix(folder) => folder.display().to_string(),
            };
            format!("{host}:{}", ports.next().unwrap_or(PORT))
        });
        hosts.collect::<Vec<_>>().join(",")
    }
}

impl fmt::Debug for PgConfig {
    /// Formats without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgConfig")
            .field("hosts", &self.driver.get_hosts())
            .field("ports", &self.driver.get_ports())
            .field("user", &self.driver.get_user())
            .field("database", &self.driver.get_dbname())
            .field("connections", &self.connections)
            .field("notify", &self.notify)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_it_holds_the_password() {
        let config = PgConfig::url("postgres://app:hunter2@db.example:5433/main").expect("legal");
        let shown = format!("{config:?}");
        assert!(shown.contains("db.example"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
        for bad in [
            "postgres://app:hunter2@db:x/main",
            "hunter2",
            "host=a hunter2",
        ] {
            let error = PgConfig::url(bad).expect_err("no address").to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn encryption_that_cannot_be_had_is_an_error_at_once() {
        let error = PgConfig::url("postgres://app@db/main?sslmode=verify-ca");
        assert!(matches!(error, Err(BackendError::Config(_))));
    }
}
