//! Which backend the options name, and which source anchors its tokens.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use soldonce_clock::{Clock, SystemClock};
use soldonce_lease::backend::postgres::{PgConfig, migrate};
use soldonce_lease::backend::redis::{RedisConfig, RedlockConfig};
use soldonce_lease::limits::REDLOCK_NODES;
use soldonce_lease::{BackendError, Builder, Doctor, FileFence, Leases, Namespace, PgFence};

use super::span::span;
use crate::clear_text::ClearLink;
use crate::exit::{Exit, USAGE};

/// The default namespace of leases.
const NAMESPACE: &str = "soldonce";
/// The default of `--ttl-longest`.
const TTL_LONGEST: Duration = Duration::from_mins(1);

/// Time-out of one call. Commands are started where machines are busy, at night during backups, and
/// a database that syncs its disk for half a second is no reason to skip one.
const CALL: Duration = Duration::from_secs(1);

/// Time-out for preparing a database that is not needed for every lease.
const PREPARE: Duration = Duration::from_secs(2);

/// Where the leases are.
#[derive(Clone, Debug, Args)]
pub(crate) struct BackendArgs {
    /// Redis, or redis+cluster://HOST:PORT,HOST:PORT, or rediss for TLS; given 3, 5 or 7 times, a Redlock
    #[arg(long, env = "SOLDONCE_REDIS_URL", hide_env_values = true)]
    #[arg(value_name = "URL", value_delimiter = ' ')]
    redis_url: Vec<String>,
    /// PostgreSQL; with --redis-url as well, it only anchors the tokens
    #[arg(long, env = "SOLDONCE_DATABASE_URL", hide_env_values = true)]
    #[arg(value_name = "URL")]
    database_url: Option<String>,
    /// Anchors the tokens of Redis, a cluster or a Redlock for the processes of this host
    #[arg(long, env = "SOLDONCE_EPOCHS", hide_env_values = true)]
    #[arg(value_name = "FOLDER")]
    epochs: Option<PathBuf>,
    /// Redlock: the longest ttl that any process asks for; younger servers do not vote
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = span)]
    ttl_longest: Duration,
    /// Keeps these leases apart from others on the same backend
    #[arg(long, default_value = NAMESPACE)]
    namespace: Namespace,
}

impl BackendArgs {
    /// Builds the arguments for these servers, with defaults for the rest.
    pub(crate) fn new(
        redis_url: Vec<String>,
        database_url: Option<String>,
        epochs: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            redis_url,
            database_url,
            epochs,
            ttl_longest: TTL_LONGEST,
            namespace: Namespace::new(NAMESPACE)?,
        })
    }

    /// Tells whether a majority of several servers decides (Redlock).
    pub(crate) fn is_redlock(&self) -> bool {
        self.redis_url.len() > 1
    }

    /// Tells whether the options name a backend.
    pub(crate) fn is_named(&self) -> bool {
        !self.redis_url.is_empty() || self.database_url.is_some()
    }

    /// Tells whether this error says that the database has no lease tables yet: none was ever held
    /// there. The library has no error of its own for it: it creates the tables where it may.
    pub(crate) fn lacks_tables(&self, error: &BackendError) -> bool {
        let is_postgres = self.redis_url.is_empty();
        let is_settings = matches!(error, BackendError::Config(_));
        is_postgres && is_settings && error.to_string().contains("not installed")
    }

    pub(crate) fn database_url(&self) -> Option<&str> {
        self.database_url.as_deref()
    }

    /// Returns the links that lead to another machine without verified encryption.
    pub(crate) fn clear_links(&self) -> impl Iterator<Item = ClearLink> {
        let database = ClearLink::of("database_url", self.database_url.as_ref());
        let redis = self.redis_url.iter();
        let redis = redis.filter_map(|url| ClearLink::of("redis_url", Some(url)));
        database.into_iter().chain(redis)
    }

    /// Explains why these options do not fit together; None if they do.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let database = self.database_url.is_some();
        let is_cluster = |url: &String| RedisConfig::seeds(url).is_some();
        let why = match (self.redis_url.as_slice(), &self.epochs) {
            ([], _) if !database => "no backend: give --redis-url or --database-url",
            ([], Some(_)) => "PostgreSQL keeps epochs of its own: leave --epochs out",
            ([one], _) if one.contains(',') && !is_cluster(one) => {
                "several servers in one --redis-url: repeat the option for a Redlock, or write \
                 redis+cluster://HOST:PORT,HOST:PORT for a cluster"
            }
            (nodes @ [_, _, ..], _) if nodes.iter().any(is_cluster) => {
                "a Redlock is made of independent servers, not of clusters"
            }
            ([_, ..], Some(_)) if database => {
                "--epochs and --database-url both anchor the tokens: give one of them"
            }
            (nodes @ [_, _, ..], _) if !REDLOCK_NODES.contains(&nodes.len()) => {
                "a Redlock has 3, 5 or 7 servers: give one --redis-url for each, or only one"
            }
            _ => return None,
        };
        Some(why.to_owned())
    }

    /// Explains why no lease of this length can be had; None if one can.
    pub(crate) fn refuses_ttl(&self, ttl: Duration) -> Option<String> {
        let longest = self.ttl_longest;
        (self.is_redlock() && ttl > longest).then(|| {
            format!(
                "--ttl {ttl:?} is above --ttl-longest {longest:?}, for which a restarted server does not \
                 vote: raise --ttl-longest wherever these servers are named"
            )
        })
    }

    /// Formats an error for people, with the option that it is about and what to write instead.
    pub(crate) fn explain(&self, error: &BackendError) -> String {
        let option = if self.redis_url.is_empty() {
            "--database-url"
        } else {
            "--redis-url"
        };
        let is_moved = matches!(error, BackendError::Rejected { code, .. } if code == "MOVED");
        let fix = if is_moved {
            "; this server is one of a cluster: write redis+cluster://HOST:PORT"
        } else {
            ""
        };
        format!("{option}: {error}{fix}")
    }

    /// Formats an error of the database or folder that anchors the tokens, with its option.
    pub(crate) fn explain_anchor(&self, error: &dyn std::fmt::Display) -> String {
        let option = if self.epochs.is_some() {
            "--epochs"
        } else {
            "--database-url"
        };
        format!("{option}: {error}")
    }

    /// Adds the source that anchors the tokens of Redis, if one is named.
    fn anchored(&self, builder: Builder, postgres: Option<PgConfig>) -> Builder {
        match (postgres, &self.epochs) {
            (Some(postgres), _) => builder.fence(PgFence::new(postgres)),
            (None, Some(folder)) => builder.fence(FileFence::new(folder)),
            (None, None) => builder,
        }
    }

    /// Prints the contradiction in the options and returns the exit code; None if there is none.
    pub(crate) fn usage_error(&self) -> Option<Exit> {
        let why = self.contradiction()?;
        eprintln!("soldonce: {why}");
        Some(Exit::Code(USAGE))
    }
}

/// Connects, and creates missing tables. Remarks that do not stop it are passed to `tell`; an error
/// is text for people. The library's doctor is not run: it has a command of its own.
pub(crate) async fn connect(args: &BackendArgs, tell: impl Fn(String)) -> Result<Leases, String> {
    let explain = |error: BackendError| args.explain(&error);
    let open = || async { builder(args)?.doctor(Doctor::Off).connect().await };
    if !args.redis_url.is_empty() {
        prepare_anchor(args).await?.into_iter().for_each(&tell);
    }
    match (open().await, &args.database_url) {
        // They are missing, or of an earlier version.
        (Err(error @ BackendError::Config(_)), Some(url))
            if error.to_string().contains("postgres::migrate") =>
        {
            let config = PgConfig::url(url).map_err(explain)?;
            migrate(&config).await.map_err(explain)?;
            open().await.map_err(explain)
        }
        (opened, _) => opened.map_err(explain),
    }
}

/// Creates the tables that anchor the tokens of Redis. A single Redis seldom needs them: that it
/// failed is then returned as a remark, and is no error.
async fn prepare_anchor(args: &BackendArgs) -> Result<Option<String>, String> {
    let Some(url) = &args.database_url else {
        return Ok(None);
    };
    let explain = |error: BackendError| args.explain_anchor(&error);
    let config = PgConfig::url(url).map_err(explain)?;
    if args.redis_url.len() != 1 {
        return migrate(&config).await.map(|()| None).map_err(explain);
    }
    let why = tokio::select! {
        prepared = migrate(&config) => match prepared {
            Ok(()) => return Ok(None),
            Err(error) => error.to_string(),
        },
        () = SystemClock.sleep_until(SystemClock.boot().plus(PREPARE)) => "no answer".to_owned(),
    };
    let why = format!("PostgreSQL, for the tokens after a loss of data: {why}");
    Ok(Some(args.explain_anchor(&why)))
}

/// Builds the leases that the options name, not connected yet.
pub(crate) fn builder(args: &BackendArgs) -> Result<Builder, BackendError> {
    if let Some(why) = args.contradiction() {
        return Err(BackendError::Config(why));
    }
    let postgres = args.database_url.as_deref().map(PgConfig::url);
    let builder = match (args.redis_url.as_slice(), postgres.transpose()?) {
        ([], Some(postgres)) => Leases::postgres(postgres),
        ([one], postgres) => args.anchored(redis(one), postgres),
        (nodes, postgres) => args.anchored(redlock(nodes, args.ttl_longest), postgres),
    };
    Ok(builder
        .namespace(args.namespace.as_str())
        .call_timeout(CALL))
}

/// Builds leases on one Redis server, or on a cluster for `redis+cluster://HOST:PORT,HOST:PORT`.
pub(crate) fn redis(url: &str) -> Builder {
    match RedisConfig::seeds(url) {
        Some(seeds) => Leases::cluster(seeds),
        None => Leases::redis(url),
    }
}

/// Builds leases on independent Redis servers, of which a majority decides.
pub(crate) fn redlock(nodes: &[String], ttl_longest: Duration) -> Builder {
    let nodes = nodes.iter().map(|url| RedisConfig::from(url.as_str()));
    Leases::redlock(RedlockConfig::new(nodes.collect()).ttl_longest(ttl_longest))
}
