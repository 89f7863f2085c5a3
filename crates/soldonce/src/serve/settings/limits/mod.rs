//! Rate limits, the proxies that are trusted, and the Redis where servers share their counts.

mod given;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use clap::Args;
use soldonce_engine::rate::{RedisRates, SharedRates};
use soldonce_server::limits::{
    CHECKOUTS_PER_ADDRESS_MAX, CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX,
    HELD_SHARE_PERCENT_MAX, HELD_UNITS_PER_ADDRESS_MAX, LEASES_PER_KEY_MAX,
    STREAMS_PER_ADDRESS_MAX,
};
use soldonce_server::{AcceptLimits, HeldLimits, RateLimits, StreamLimits};

use super::Notes;
use given::{GivenLimit, networks, shared};

/// Arguments about limits.
#[derive(Clone, Debug, Args)]
pub(crate) struct LimitArgs {
    /// New sessions of one address, such as 300/1m; 0 or off is no limit [default: 300/1m]
    #[arg(long, env = "SOLDONCE_LIMIT_SESSIONS", value_name = "N/TIME")]
    limit_sessions: Option<String>,
    /// Holds and other commands of one session [default: 120/1m]
    #[arg(long, env = "SOLDONCE_LIMIT_COMMANDS", value_name = "N/TIME")]
    limit_commands: Option<String>,
    /// Holds and other commands of all sessions at one address [default: 1200/1m]
    #[arg(long, env = "SOLDONCE_LIMIT_ADDRESS", value_name = "N/TIME")]
    limit_address: Option<String>,
    /// Units that sessions at one address may hold at once [default: 200]
    #[arg(long, env = "SOLDONCE_LIMIT_HELD", value_name = "N")]
    limit_held: Option<String>,
    /// Percent of an event's units that sessions at one address may hold at once, never less than two
    /// holders may [default: 10%]
    #[arg(long, env = "SOLDONCE_LIMIT_SHARE", value_name = "PERCENT")]
    limit_share: Option<String>,
    /// Payments that sessions at one address may have under way at once [default: 20]
    #[arg(long, env = "SOLDONCE_LIMIT_CHECKOUTS", value_name = "N")]
    limit_checkouts: Option<String>,
    /// Holds of sessions at one address that end by their time, unpaid; then new ones wait
    /// [default: 60/1h]
    #[arg(long, env = "SOLDONCE_LIMIT_LAPSES", value_name = "N/TIME")]
    limit_lapses: Option<String>,
    /// Reads, and requests with wrong credentials, of one address [default: 6000/1m]
    #[arg(long, env = "SOLDONCE_LIMIT_READS", value_name = "N/TIME")]
    limit_reads: Option<String>,
    /// Requests of one API key [default: off]
    #[arg(long, env = "SOLDONCE_LIMIT_KEYS", value_name = "N/TIME")]
    limit_keys: Option<String>,
    /// Live leases of one API key at this server [default: 1000]
    #[arg(long, env = "SOLDONCE_LIMIT_LEASES", value_name = "N")]
    limit_leases: Option<String>,
    /// Acquires of leases by one API key [default: 6000/1m]
    #[arg(long, env = "SOLDONCE_LIMIT_ACQUIRES", value_name = "N/TIME")]
    limit_acquires: Option<String>,
    /// Feed streams that one address may have open [default: 256]
    #[arg(long, env = "SOLDONCE_LIMIT_STREAMS", value_name = "N")]
    limit_streams: Option<String>,
    /// Connections that may be open at once [default: 10000]
    #[arg(long, env = "SOLDONCE_LIMIT_CONNECTIONS", value_name = "N")]
    limit_connections: Option<String>,
    /// Connections that one address may have open, trusted proxies apart [default: 1250]
    #[arg(long, env = "SOLDONCE_LIMIT_PEER", value_name = "N")]
    limit_peer: Option<String>,
    /// Proxies whose X-Forwarded-For and X-Forwarded-Proto are believed, such as 10.0.0.0/8; may be given
    /// several times
    #[arg(long, env = "SOLDONCE_TRUSTED_PROXIES", value_name = "ADDRESS")]
    #[arg(value_delimiter = ',')]
    trusted_proxies: Vec<String>,
    /// Redis, or redis+cluster://HOST:PORT,HOST:PORT, or rediss for TLS, through which servers count together and
    /// tell each other what is taken
    #[arg(long, env = "SOLDONCE_REDIS_URL", hide_env_values = true)]
    #[arg(value_name = "URL")]
    pub(super) redis_url: Option<String>,
}

/// Settings about limits, as the server takes them.
#[derive(Clone, Debug)]
pub(crate) struct LimitSettings {
    pub(crate) rates: RateLimits,
    pub(crate) accept: AcceptLimits,
    pub(crate) streams: StreamLimits,
    /// Most live leases of a key, if there is a limit.
    pub(crate) leases: Option<u32>,
    /// The counters that servers share, if they do.
    pub(crate) shared: Option<Arc<RedisRates>>,
}

impl LimitSettings {
    /// Builds the settings about limits from the arguments.
    ///
    /// # Errors
    /// Names the setting, the value, and what would be right.
    pub(super) fn gather(args: &LimitArgs, notes: &mut Notes) -> anyhow::Result<Self> {
        macro_rules! given {
            ($name:ident.$read:ident($($default:expr),*)) => {
                GivenLimit {
                    name: stringify!($name),
                    text: args.$name.as_deref(),
                    notes: &mut *notes,
                }
                .$read($($default),*)?
            };
        }
        let default = RateLimits::default();
        let shared = args.redis_url.as_deref().map(shared).transpose()?;
        let rates = RateLimits {
            sessions: given!(limit_sessions.quota(default.sessions)),
            commands: given!(limit_commands.quota(default.commands)),
            address_commands: given!(limit_address.quota(default.address_commands)),
            held: HeldLimits {
                units: given!(limit_held.number(HELD_UNITS_PER_ADDRESS_MAX)),
                share_percent: given!(limit_share.percent(HELD_SHARE_PERCENT_MAX)),
                checkouts: given!(limit_checkouts.number(CHECKOUTS_PER_ADDRESS_MAX)),
            },
            lapses: given!(limit_lapses.quota(default.lapses)),
            reads: given!(limit_reads.quota(default.reads)),
            keys: given!(limit_keys.quota(None)),
            acquires: given!(limit_acquires.quota(default.acquires)),
            trusted_proxies: networks(&args.trusted_proxies)?,
            shared: shared.clone().map(|shared| shared as Arc<dyn SharedRates>),
        };
        let leases = given!(limit_leases.number(LEASES_PER_KEY_MAX));
        let accept = AcceptLimits {
            connections_max: given!(limit_connections.count(CONNECTIONS_MAX, usize::MAX)),
            connections_per_address_max: given!(
                limit_peer.count(CONNECTIONS_PER_ADDRESS_MAX, usize::MAX)
            ),
            ..AcceptLimits::default()
        };
        let most = accept.connections_max;
        let per_address = given!(limit_streams.count(STREAMS_PER_ADDRESS_MAX, most));
        Ok(Self {
            rates,
            streams: StreamLimits {
                total: most,
                per_address,
            },
            accept,
            leases,
            shared,
        })
    }
}
