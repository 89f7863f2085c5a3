//! The backend of the leases of the service.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use soldonce_lease::limits::REDLOCK_NODES;
use soldonce_lease::{Clock, FileFence, Leases};
use soldonce_server::limits::LEASE_TTL_MS_MAX;
use soldonce_server::{LeasePlace, LeaseSettings};

use crate::lease::backend::{self, BackendArgs};

/// Folder in the data folder with the epochs by which lease tokens rise through a restart.
pub(crate) const EPOCHS: &str = "lease-epochs";
/// Longest ttl on a Redlock, ms: its servers that restarted do not vote for so long.
const REDLOCK_TTL_MS_MAX: u64 = 60_000;

/// A backend for leases, not connected yet.
#[derive(Clone, Debug)]
pub(crate) enum LeaseChoice {
    /// In this process; their epochs are in the folder.
    Memory(PathBuf),
    /// Where `soldonce lease run` with the same servers finds them too.
    Backend(BackendArgs),
}

impl LeaseChoice {
    /// Chooses the servers at `urls`; without any the database, else memory.
    ///
    /// # Errors
    /// Names what would be right; never shows an address.
    pub(crate) fn new(
        urls: Vec<String>,
        database: Option<String>,
        data: &Path,
    ) -> anyhow::Result<Self> {
        let is_postgres =
            |url: &String| url.starts_with("postgres://") || url.starts_with("postgresql://");
        let schemes = ["redis", "rediss", "redis+cluster", "rediss+cluster"];
        let is_redis = |url: &String| {
            url.split_once("://")
                .is_some_and(|(scheme, _)| schemes.contains(&scheme))
        };
        let is_single = |url: &String| is_redis(url) && !url.contains("+cluster://");
        match urls.as_slice() {
            [] => Ok(match database {
                Some(url) => Self::Backend(BackendArgs::new(Vec::new(), Some(url), None)?),
                None => Self::Memory(data.join(EPOCHS)),
            }),
            [url] if is_postgres(url) => {
                let args = BackendArgs::new(Vec::new(), Some(url.clone()), None)?;
                Ok(Self::Backend(args))
            }
            [one] if is_redis(one) => Self::anchored(urls, database, data),
            several if REDLOCK_NODES.contains(&several.len()) && several.iter().all(is_single) => {
                Self::anchored(urls, database, data)
            }
            _ => anyhow::bail!(
                "lease_url: write redis://HOST:PORT, redis+cluster://HOST:PORT,HOST:PORT (rediss for TLS) or \
                 postgres://.. once, or the redis:// addresses of 3, 5 or 7 independent servers"
            ),
        }
    }

    /// Chooses Redis servers. The database anchors their tokens, or without one the data folder.
    fn anchored(redis: Vec<String>, database: Option<String>, data: &Path) -> anyhow::Result<Self> {
        let epochs = database.is_none().then(|| data.join(EPOCHS));
        Ok(Self::Backend(BackendArgs::new(redis, database, epochs)?))
    }

    pub(crate) fn settings(&self, live_max: Option<u32>) -> LeaseSettings {
        let is_redlock = matches!(self, Self::Backend(args) if args.is_redlock());
        LeaseSettings {
            place: Arc::new(self.clone()),
            ttl_ms_max: if is_redlock {
                REDLOCK_TTL_MS_MAX
            } else {
                LEASE_TTL_MS_MAX
            },
            live_max,
        }
    }

    /// Returns the text for `--print-settings`, without the address.
    #[expect(
        clippy::fn_params_excessive_bools,
        reason = "whether an address was given"
    )]
    pub(crate) const fn shown(&self, is_given: bool) -> &'static str {
        match self {
            Self::Memory(_) => "in memory",
            Self::Backend(_) if is_given => "(hidden)",
            Self::Backend(_) => "that of database_url",
        }
    }
}

impl LeasePlace for LeaseChoice {
    fn connect(
        &self,
        clock: Arc<dyn Clock>,
    ) -> Pin<Box<dyn Future<Output = Result<Leases, String>> + Send + 'static>> {
        let choice = self.clone();
        Box::pin(async move {
            match choice {
                Self::Memory(folder) => {
                    let leases = Leases::memory().clock(clock).fence(FileFence::new(folder));
                    leases.connect().await.map_err(|error| error.to_string())
                }
                Self::Backend(args) => {
                    backend::connect(&args, |remark| tracing::warn!(remark, "leases")).await
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(urls: &[&str], database: Option<&str>) -> Option<(&'static str, u64)> {
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        let is_given = !urls.is_empty();
        let choice = LeaseChoice::new(urls, database.map(str::to_owned), Path::new("data")).ok()?;
        if let LeaseChoice::Backend(args) = &choice {
            assert_eq!(args.contradiction(), None);
        }
        Some((choice.shown(is_given), choice.settings(None).ttl_ms_max))
    }

    #[test]
    fn leases_are_where_the_setting_or_the_database_is() {
        let (day, minute) = (LEASE_TTL_MS_MAX, REDLOCK_TTL_MS_MAX);
        let database = Some("postgres://db/x");
        assert_eq!(choice(&[], None), Some(("in memory", day)));
        assert_eq!(choice(&[], database), Some(("that of database_url", day)));
        for one in [
            "redis://a",
            "rediss://a",
            "redis+cluster://a:1,b:1",
            "rediss+cluster://a:1,b:1",
            "postgres://b/x",
        ] {
            assert_eq!(choice(&[one], None), Some(("(hidden)", day)), "{one}");
            assert_eq!(choice(&[one], database), Some(("(hidden)", day)), "{one}");
        }
        let three = ["redis://a", "redis://b", "redis://c"];
        assert_eq!(choice(&three, None), Some(("(hidden)", minute)));
        assert_eq!(choice(&three, database), Some(("(hidden)", minute)));
    }

    #[test]
    fn what_is_no_place_is_refused() {
        let wrong: [&[&str]; 6] = [
            &["http://a"],
            &["redis://a", "redis://b"],
            &["redis://a"; 9],
            &["postgres://a/x", "postgres://b/x", "postgres://c/x"],
            &["redis://a", "redis://b", "postgres://c/x"],
            &["redis+cluster://a:1", "redis://b", "redis://c"],
        ];
        for urls in wrong {
            assert_eq!(choice(urls, None), None, "{urls:?}");
        }
    }
}
