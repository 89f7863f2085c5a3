//! The address of a Redis server, its login and its TLS. A type of this crate, so that the driver
//! can be replaced.

mod tls;
mod url;

use std::fmt;

use self::tls::Tls;
use crate::BackendError;

/// The address of one Redis server: `redis://[user[:password]@]host[:port][/database]`, or its
/// parts. A text that is not an address is reported when it is first used.
///
/// `rediss://` is TLS (feature `tls`): the server proves its name by the system's authorities, or by those of
/// `?sslrootcert=FILE`; `sslcert=FILE&sslkey=FILE` is the client's own certificate. There is no way
/// to verify less, and no fallback to a connection without TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisConfig(Result<Address, String>);

#[derive(Clone, PartialEq, Eq)]
struct Address {
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
    database: i64,
    tls: Option<Tls>,
}

const PORT: u16 = 6_379;

impl RedisConfig {
    /// Creates the address of the server at `host` and `port`, with database 0 and no login.
    pub fn new(host: &str, port: u16) -> Self {
        Self(Ok(Address {
            host: host.to_owned(),
            port,
            user: None,
            password: None,
            database: 0,
            tls: None,
        }))
    }

    /// Parses the seeds of `redis+cluster://[user[:password]@]host[:port],host[:port]`, or of
    /// `rediss+cluster://` with TLS: a login and parameters apply to all of them. `None` if the
    /// text begins with neither.
    pub fn seeds(url: &str) -> Option<Vec<Self>> {
        Some(url::of_seeds(url)?.map(Self::from).collect())
    }

    /// Logs in as this user of the server's access control list.
    #[must_use]
    pub fn user(self, user: &str) -> Self {
        self.with(|address| address.user = Some(user.to_owned()))
    }

    /// Logs in with this password.
    #[must_use]
    pub fn password(self, password: &str) -> Self {
        self.with(|address| address.password = Some(password.to_owned()))
    }

    /// Uses this database. A cluster has only database 0.
    #[must_use]
    pub fn database(self, database: u16) -> Self {
        self.with(|address| address.database = i64::from(database))
    }

    fn with(mut self, change: impl FnOnce(&mut Address)) -> Self {
        if let Ok(address) = &mut self.0 {
            change(address);
        }
        self
    }

    /// Converts to the driver's type. Fails with `Config` if the address is not valid.
    pub(super) fn driver(&self) -> Result<redis::ConnectionInfo, BackendError> {
        let config = |why: String| BackendError::Config(why);
        let address = self.0.as_ref().map_err(|why| config(why.clone()))?;
        // Off by default in the driver, which costs half of the throughput on a real network
        // (lease.md 8).
        let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let mut login = redis::RedisConnectionInfo::default()
            .set_db(address.database)
            .set_skip_set_lib_name();
        if let Some(user) = &address.user {
            login = login.set_username(user);
        }
        if let Some(password) = &address.password {
            login = login.set_password(password);
        }
        let at = (address.host.clone(), address.port);
        let info = match &address.tls {
            Some(tls) => tls.driver(at)?,
            None => redis::IntoConnectionInfo::into_connection_info(at)
                .map_err(|error| config(error.to_string()))?,
        };
        Ok(info.set_tcp_settings(tcp).set_redis_settings(login))
    }
}

/// Certificates for all nodes of a cluster.
#[cfg(all(feature = "cluster", feature = "tls"))]
impl RedisConfig {
    pub(super) fn certificates(&self) -> Result<Option<redis::TlsCertificates>, BackendError> {
        let address = self.0.as_ref().ok();
        let tls = address.and_then(|address| address.tls.as_ref());
        tls.map(Tls::certificates).transpose()
    }
}

impl From<&str> for RedisConfig {
    fn from(url: &str) -> Self {
        Self(url::parse(url))
    }
}

impl From<String> for RedisConfig {
    fn from(url: String) -> Self {
        Self::from(url.as_str())
    }
}

/// Shows no login: a configuration ends up in logs.
impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(at) => {
                let tls = if at.tls.is_some() { ", TLS" } else { "" };
                write!(
                    f,
                    "RedisConfig({}:{}/{}{tls})",
                    at.host, at.port, at.database
                )
            }
            Err(why) => write!(f, "RedisConfig({why})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_its_parts() {
        let from = RedisConfig::from("redis://ann:p%40ss@10.0.0.5:7000/3");
        let whole = RedisConfig::new("10.0.0.5", 7_000);
        assert_eq!(from, whole.user("ann").password("p@ss").database(3));
        assert_eq!(RedisConfig::from("redis://h"), RedisConfig::new("h", 6_379));
    }

    #[test]
    fn a_host_in_brackets_is_an_address() {
        let info = RedisConfig::from("redis://[::1]:7000").driver();
        let info = info.expect("legal");
        assert_eq!(info.addr().to_string(), "::1:7000");
    }

    #[test]
    fn seeds_share_their_login_and_their_parameters() {
        let seeds = |url| RedisConfig::seeds(url);
        let login = |at: &str| RedisConfig::from(format!("redis://ann:p%40@{at}").as_str());
        let both = seeds("redis+cluster://ann:p%40@a:1,b:2");
        assert_eq!(both, Some(vec![login("a:1"), login("b:2")]));
        let each = seeds("redis+cluster://:x@a,:x@b");
        let each_own = ["redis://:x@a", "redis://:x@b"].map(RedisConfig::from);
        assert_eq!(each, Some(each_own.to_vec()));
        let encrypted = seeds("rediss+cluster://:x@a,b?sslrootcert=/ca");
        let each = ["a", "b"].map(|at| format!("rediss://:x@{at}?sslrootcert=/ca"));
        assert_eq!(encrypted, Some(each.map(RedisConfig::from).to_vec()));
        assert_eq!(seeds("redis://a,b"), None);
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_that_cannot_be_had_is_an_error_at_once() {
        let tls = RedisConfig::from("rediss://h").driver().expect_err("TLS");
        assert!(tls.to_string().contains("feature"), "{tls}");
    }

    #[test]
    fn what_cannot_work_is_a_configuration_error() {
        for bad in [
            "",
            "10.0.0.5",
            "http://h",
            "redis://h/x",
            "redis://h?sslrootcert=/ca.pem",
            "redis://h?nonsense=1",
            "rediss://h#insecure",
            "rediss://h?sslcert=/own.pem",
            "rediss://h?sslrootcert=/no/ca.pem",
            "redis://a:%zz@h",
            "redis://a:%+f@h",
        ] {
            let error = RedisConfig::from(bad).driver().expect_err(bad);
            assert!(matches!(error, BackendError::Config(_)), "{bad}: {error}");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        for url in ["redis://ann:hidden@h", "redis://ann:hidden@h/x", "hidden"] {
            let config = RedisConfig::from(url);
            let error = config.driver().err().map(|error| error.to_string());
            let shown = format!("{config:?} {error:?}");
            assert!(!shown.contains("hidden"), "{shown}");
            assert!(!shown.contains("ann"), "{shown}");
        }
    }

    #[test]
    fn connections_do_not_wait_to_fill_packets() {
        let info = RedisConfig::from("redis://h").driver().expect("legal");
        assert!(info.tcp_settings().nodelay());
    }
}
