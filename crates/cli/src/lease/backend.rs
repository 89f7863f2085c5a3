//! Which backend the options name, and which source anchors its tokens.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use soldonce_lease::backend::postgres::{PgConfig, migrate};
use soldonce_lease::backend::redis::{RedisConfig, RedlockConfig};
use soldonce_lease::{
    BackendError, Builder, Clock, FileEpochs, FileTokens, Locks, Namespace, PgEpochs, PgTokens,
    SystemClock,
};

use super::args::span;
use crate::exit::{Exit, USAGE};

const CLUSTER: &str = "redis+cluster://";

/// Longest wait for a database that is not needed for every lease.
const PREPARE: Duration = Duration::from_secs(2);

/// Where the leases are.
#[derive(Debug, Args)]
pub(crate) struct BackendArgs {
    /// Redis, or redis+cluster://HOST:PORT,HOST:PORT; given 3, 5 or 7 times, a Redlock
    #[arg(
        long,
        env = "SOLDONCE_REDIS_URL",
        hide_env_values = true,
        value_name = "URL",
        value_delimiter = ' '
    )]
    redis_url: Vec<String>,
    /// PostgreSQL; with --redis-url as well, it only anchors the tokens
    #[arg(
        long,
        env = "SOLDONCE_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    database_url: Option<String>,
    /// Anchors the tokens of Redis, a cluster or a Redlock for the processes of this host
    #[arg(
        long,
        env = "SOLDONCE_EPOCHS",
        hide_env_values = true,
        value_name = "FOLDER"
    )]
    epochs: Option<PathBuf>,
    /// Redlock: the longest ttl that any process asks for; younger servers do not vote
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = span)]
    ttl_longest: Duration,
    /// Keeps these leases apart from others on the same backend
    #[arg(long, default_value = "soldonce")]
    namespace: Namespace,
}

impl BackendArgs {
    /// Whether they name a backend at all.
    pub(crate) fn is_named(&self) -> bool {
        !self.redis_url.is_empty() || self.database_url.is_some()
    }

    /// Whether this error of them says that the database has no tables for leases yet: nobody has held
    /// one there. The library has no error of its own for it, for it makes the tables where it may.
    pub(crate) fn lacks_tables(&self, error: &BackendError) -> bool {
        let is_postgres = self.redis_url.is_empty();
        let is_settings = matches!(error, BackendError::Config(_));
        is_postgres && is_settings && error.to_string().contains("not installed")
    }

    /// The database, if they name one.
    pub(crate) fn database_url(&self) -> Option<&str> {
        self.database_url.as_deref()
    }

    /// Why these options do not fit together, if they do not.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let database = self.database_url.is_some();
        let is_cluster = |url: &String| url.starts_with(CLUSTER);
        let why = match (self.redis_url.as_slice(), &self.epochs) {
            ([], _) if !database => "no backend: give --redis-url or --database-url",
            ([], Some(_)) => "PostgreSQL keeps epochs of its own: leave --epochs away",
            ([one], _) if one.contains(',') && !is_cluster(one) => {
                "several servers in one --redis-url: repeat the option for a Redlock, or write \
                 redis+cluster://HOST:PORT,HOST:PORT for a cluster"
            }
            ([_], Some(_)) if database => {
                "--epochs and --database-url both anchor the tokens: give one of them"
            }
            ([] | [_], _) => return None,
            (nodes, _) if nodes.iter().any(is_cluster) => {
                "a Redlock is made of independent servers, not of clusters"
            }
            (_, Some(_)) if database => {
                "--epochs and --database-url both anchor the tokens: give one of them"
            }
            (nodes, _) if nodes.len() % 2 == 0 => {
                "an even number of servers tolerates no more than one less: give --redis-url once, \
                 or 3, 5 or 7 times"
            }
            _ => return None,
        };
        Some(why.to_owned())
    }

    /// Tells the contradiction, if there is one, and ends the command.
    pub(crate) fn usage_error(&self) -> Option<Exit> {
        let why = self.contradiction()?;
        eprintln!("soldonce: {why}");
        Some(Exit::Code(USAGE))
    }

    /// What people should know once, and what stops nothing.
    pub(crate) fn remark(&self) -> Option<&'static str> {
        let anchored = self.database_url.is_some() || self.epochs.is_some();
        (!anchored).then_some(
            "tokens are not anchored: they fall when Redis loses its data, and gates refuse them \
             (--database-url or, for one host, --epochs)",
        )
    }
}

/// Makes the tables that are missing, under a lock of the database. Where PostgreSQL only gives
/// epochs, which are seldom needed, its absence is told and stops nothing.
pub(crate) async fn prepare(args: &BackendArgs) -> Result<Option<String>, BackendError> {
    let Some(url) = &args.database_url else {
        return Ok(None);
    };
    let config = PgConfig::url(url)?;
    if args.redis_url.len() != 1 {
        return migrate(&config).await.map(|()| None);
    }
    let why = tokio::select! {
        prepared = migrate(&config) => match prepared {
            Ok(()) => return Ok(None),
            Err(error) => error.to_string(),
        },
        () = SystemClock.sleep_until(SystemClock.boot().plus(PREPARE)) => "no answer".to_owned(),
    };
    Ok(Some(format!(
        "PostgreSQL, for the tokens after a loss of data: {why}"
    )))
}

/// The leases that the options name, not connected yet.
pub(crate) fn builder(args: &BackendArgs) -> Result<Builder, BackendError> {
    if let Some(why) = args.contradiction() {
        return Err(BackendError::Config(why));
    }
    let postgres = args.database_url.as_deref().map(PgConfig::url);
    let builder = match (args.redis_url.as_slice(), postgres.transpose()?) {
        ([], Some(postgres)) => Locks::postgres(postgres),
        ([one], Some(postgres)) => redis(one).epochs(PgEpochs::new(postgres)),
        ([one], None) => match &args.epochs {
            Some(folder) => redis(one).epochs(FileEpochs::new(folder)),
            None => redis(one),
        },
        (nodes, Some(postgres)) => redlock(nodes, args.ttl_longest).tokens(PgTokens::new(postgres)),
        (nodes, None) => {
            let redlock = redlock(nodes, args.ttl_longest);
            match &args.epochs {
                Some(folder) => redlock.tokens(FileTokens::new(folder)),
                None => redlock,
            }
        }
    };
    Ok(builder.namespace(args.namespace.as_str()))
}

/// One URL is a server, `redis+cluster://HOST:PORT,HOST:PORT` a cluster.
pub(crate) fn redis(url: &str) -> Builder {
    match url.strip_prefix(CLUSTER) {
        Some(seeds) => {
            let seed = |at: &str| RedisConfig::from(format!("redis://{at}"));
            Locks::cluster(seeds.split(',').map(seed).collect())
        }
        None => Locks::redis(url),
    }
}

/// Independent servers, of which a majority decides.
pub(crate) fn redlock(nodes: &[String], ttl_longest: Duration) -> Builder {
    let nodes = nodes.iter().map(|url| RedisConfig::from(url.as_str()));
    Locks::redlock(RedlockConfig::new(nodes.collect()).ttl_longest(ttl_longest))
}
