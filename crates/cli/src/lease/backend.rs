//! Which backend the options name.

use soldonce_lease::backend::postgres::PgConfig;
use soldonce_lease::backend::redis::RedisConfig;
use soldonce_lease::{BackendError, Builder, Locks, PgEpochs};

use super::args::BackendArgs;

const CLUSTER: &str = "redis+cluster://";

/// The leases that the options name, not connected yet. Redis comes first; PostgreSQL beside it
/// anchors the tokens.
pub(crate) fn builder(args: &BackendArgs) -> Result<Builder, BackendError> {
    let postgres = args
        .database_url
        .as_deref()
        .map(PgConfig::url)
        .transpose()?;
    let builder = match (&args.redis_url, postgres) {
        (Some(url), None) => redis(url)?,
        (Some(url), Some(postgres)) => redis(url)?.epochs(PgEpochs::new(postgres)),
        (None, Some(postgres)) => Locks::postgres(postgres),
        (None, None) => {
            let why = "no backend: give --redis-url or --database-url";
            return Err(BackendError::Config(why.to_owned()));
        }
    };
    Ok(builder.namespace(args.namespace.as_str()))
}

/// One URL is a server, `redis+cluster://host:port,host:port` a cluster.
fn redis(url: &str) -> Result<Builder, BackendError> {
    if let Some(seeds) = url.strip_prefix(CLUSTER) {
        let seed = |at: &str| RedisConfig::from(format!("redis://{at}"));
        return Ok(Locks::cluster(seeds.split(',').map(seed).collect()));
    }
    if url.contains(',') {
        let why = "several Redis URLs (Redlock) are not supported here: give one, or \
                   redis+cluster://host:port,host:port";
        return Err(BackendError::Config(why.to_owned()));
    }
    Ok(Locks::redis(url))
}
