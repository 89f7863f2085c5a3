//! Where a Redis server is and how to log in. Our own type, so that the driver can change.

use std::fmt;

use crate::BackendError;

/// The address of one Redis server: `redis://[user[:password]@]host[:port][/database]`, or its
/// parts. A text that is no address is reported when it is first used.
///
/// TLS (`rediss://`) is refused: put a tunnel on this machine and connect to that.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisConfig(Result<Address, String>);

#[derive(Clone, PartialEq, Eq)]
struct Address {
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
    database: i64,
}

const PORT: u16 = 6_379;

impl RedisConfig {
    /// The server at `host` and `port`, database 0, without a login.
    pub fn new(host: &str, port: u16) -> Self {
        Self(Ok(Address {
            host: host.to_owned(),
            port,
            user: None,
            password: None,
            database: 0,
        }))
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

    /// What the driver needs to know of it.
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
        let at = redis::ConnectionAddr::Tcp(address.host.clone(), address.port);
        let info = redis::IntoConnectionInfo::into_connection_info(at);
        let info = info.map_err(|error| config(error.to_string()))?;
        Ok(info.set_tcp_settings(tcp).set_redis_settings(login))
    }
}

impl From<&str> for RedisConfig {
    fn from(url: &str) -> Self {
        Self(parse(url))
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
            Ok(at) => write!(f, "RedisConfig({}:{}/{})", at.host, at.port, at.database),
            Err(why) => write!(f, "RedisConfig({why})"),
        }
    }
}

/// The parts of a URL. Errors never repeat it, because it may hold a password.
fn parse(url: &str) -> Result<Address, String> {
    if url.starts_with("rediss://") {
        return Err("rediss:// (TLS) is not supported: connect through a TLS tunnel".to_owned());
    }
    let Some(parsed) = redis::parse_redis_url(url).filter(|parsed| parsed.scheme() == "redis")
    else {
        return Err("the address must look like redis://host:6379".to_owned());
    };
    let plain = |part: &str| decoded(part).ok_or("the login of the address is not valid");
    let database = match parsed.path().trim_matches('/') {
        "" => 0,
        text => text
            .parse::<u16>()
            .map_err(|_| "the database of the address is no number")?,
    };
    let host = parsed.host_str().filter(|host| !host.is_empty());
    let user = Some(parsed.username()).filter(|user| !user.is_empty());
    Ok(Address {
        host: host.ok_or("the address has no host")?.to_owned(),
        port: parsed.port().unwrap_or(PORT),
        user: user.map(plain).transpose()?,
        password: parsed.password().map(plain).transpose()?,
        database: i64::from(database),
    })
}

/// Undoes percent encoding.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
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
    fn what_cannot_work_is_a_configuration_error() {
        for bad in [
            "",
            "10.0.0.5",
            "http://h",
            "redis://h/x",
            "rediss://h",
            "redis://a:%zz@h",
        ] {
            let error = RedisConfig::from(bad).driver().expect_err(bad);
            assert!(matches!(error, BackendError::Config(_)), "{bad}: {error}");
        }
        let tls = RedisConfig::from("rediss://h").driver().expect_err("TLS");
        assert!(tls.to_string().contains("TLS"), "{tls}");
    }

    #[test]
    fn no_secret_is_shown() {
        for url in ["redis://ann:hidden@h", "redis://ann:hidden@h/x", "hidden"] {
            let config = RedisConfig::from(url);
            let error = config.driver().err().map(|error| error.to_string());
            let shown = format!("{config:?} {error:?}");
            assert!(
                !shown.contains("hidden") && !shown.contains("ann"),
                "{shown}"
            );
        }
    }

    #[test]
    fn connections_do_not_wait_to_fill_packets() {
        let info = RedisConfig::from("redis://h").driver().expect("legal");
        assert!(info.tcp_settings().nodelay());
    }
}
