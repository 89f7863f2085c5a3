//! Links to other machines that are not encrypted, or whose certificate is not verified.

use soldonce_engine::ledger::postgres::{is_remote, unverified_host};

/// A setting that leads to another machine without verified encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClearLink {
    pub(crate) setting: &'static str,
    pub(crate) host: String,
}

/// Tells the operator what to do about such a link.
pub(crate) const FIX: &str = "it is not encrypted, or not verified: write sslmode=verify-full (PostgreSQL) or \
                               rediss:// (Redis), or keep it within a private network";

impl ClearLink {
    /// Returns the link if the URL of `setting` (a database, a Redis, or the first nodes of a
    /// cluster) leads to another machine without verified encryption.
    pub(crate) fn of(setting: &'static str, url: Option<&String>) -> Option<Self> {
        let url = url?;
        let host = if url.starts_with("redis") {
            clear_redis(url)?
        } else {
            unverified_host(url)?
        };
        Some(Self { setting, host })
    }

    /// Logs a warning for the operator.
    pub(crate) fn warn(&self) {
        let Self { setting, host } = self;
        tracing::warn!(setting, %host, "a link to another machine: {FIX}");
    }
}

/// Finds the first remote host of a Redis address without TLS.
fn clear_redis(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if scheme.starts_with("rediss") {
        return None;
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let hosts = authority.rsplit('@').next().unwrap_or_default();
    let mut hosts = hosts.split(',').map(|host| match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    });
    hosts.find(|host| is_remote(host)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redis_of_another_machine_is_found_without_its_password() {
        for (url, remote) in [
            ("redis://:word@cache.example:6379/0", Some("cache.example")),
            ("redis://cache.example", Some("cache.example")),
            (
                "redis+cluster://127.0.0.1:7000,10.0.0.7:7001",
                Some("10.0.0.7"),
            ),
            ("redis://[fd00::1]:6379", Some("[fd00::1]")),
            ("rediss://cache.example", None),
            ("redis://localhost", None),
            ("redis://:word@127.0.0.1:6379", None),
            ("redis://[::1]:6379", None),
        ] {
            let found = ClearLink::of("redis_url", Some(&url.to_owned()));
            assert_eq!(found.map(|link| link.host).as_deref(), remote, "{url}");
        }
    }
}
