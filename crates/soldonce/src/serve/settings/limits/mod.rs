//! How often callers may ask, whose word about addresses counts, and where servers count together.

mod given;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use clap::Args;
use soldonce_engine::rate::{Quota, RedisRates, SharedRates};
use soldonce_server::limits::{
    CHECKOUTS_PER_ADDRESS_MAX, CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX,
    HELD_SHARE_PERCENT_MAX, HELD_UNITS_PER_ADDRESS_MAX, LEASES_PER_KEY_MAX, STREAMS_MAX,
};
use soldonce_server::{AcceptLimits, HeldLimits, Network, RateLimits, StreamLimits};

use super::file::SettingsFile;
use super::source::{Sourced, line};
use given::{Given, networks, written};

/// Arguments about limits.
#[derive(Clone, Debug, Default, Args)]
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
    #[arg(
        long,
        env = "SOLDONCE_TRUSTED_PROXIES",
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    trusted_proxies: Vec<String>,
    /// Redis, or redis+cluster://HOST:PORT,HOST:PORT, through which servers count together and tell
    /// each other what is taken
    #[arg(
        long,
        env = "SOLDONCE_REDIS_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(super) redis_url: Option<String>,
}

/// Settings about limits.
#[derive(Clone, Debug)]
pub(crate) struct LimitSettings {
    sessions: Sourced<Option<Quota>>,
    commands: Sourced<Option<Quota>>,
    address: Sourced<Option<Quota>>,
    held: Sourced<Option<u32>>,
    share: Sourced<Option<u32>>,
    checkouts: Sourced<Option<u32>>,
    lapses: Sourced<Option<Quota>>,
    reads: Sourced<Option<Quota>>,
    keys: Sourced<Option<Quota>>,
    leases: Sourced<Option<u32>>,
    acquires: Sourced<Option<Quota>>,
    streams: Sourced<usize>,
    connections: Sourced<Option<u32>>,
    peer: Sourced<Option<u32>>,
    trusted_proxies: Sourced<Vec<Network>>,
    /// As they were written, for people.
    proxies_text: String,
    shared: Sourced<Option<Arc<RedisRates>>>,
}

impl LimitSettings {
    /// Gathers the settings about limits from flags, environment and file.
    ///
    /// # Errors
    /// Names the setting, the value, and what would be right.
    pub(super) fn gather(args: &LimitArgs, file: &mut SettingsFile) -> anyhow::Result<Self> {
        let given = |name, flag: &Option<String>, file: &mut Option<String>| Given {
            name,
            text: Sourced::first(flag.clone().map(Some), file.take().map(Some), None),
        };
        let proxies = (!args.trusted_proxies.is_empty()).then(|| args.trusted_proxies.clone());
        let proxies = Sourced::first(proxies, file.trusted_proxies.take(), Vec::new());
        macro_rules! given {
            ($($name:ident),*) => {
                $(let $name = given(stringify!($name), &args.$name, &mut file.$name);)*
            };
        }
        given!(
            limit_sessions,
            limit_commands,
            limit_address,
            limit_held,
            limit_share,
            limit_checkouts,
            limit_lapses,
            limit_reads,
            limit_keys,
            limit_leases,
            limit_acquires,
            limit_streams,
            limit_connections,
            limit_peer,
            redis_url
        );
        let default = RateLimits::default();
        Ok(Self {
            sessions: limit_sessions.quota(default.sessions)?,
            commands: limit_commands.quota(default.commands)?,
            address: limit_address.quota(default.address_commands)?,
            held: limit_held.number(HELD_UNITS_PER_ADDRESS_MAX, u32::MAX)?,
            share: limit_share.number(HELD_SHARE_PERCENT_MAX, 100)?,
            checkouts: limit_checkouts.number(CHECKOUTS_PER_ADDRESS_MAX, u32::MAX)?,
            lapses: limit_lapses.quota(default.lapses)?,
            reads: limit_reads.quota(default.reads)?,
            keys: limit_keys.quota(None)?,
            leases: limit_leases.number(LEASES_PER_KEY_MAX, u32::MAX)?,
            acquires: limit_acquires.quota(default.acquires)?,
            streams: limit_streams.streams()?,
            connections: limit_connections.number(count(CONNECTIONS_MAX), u32::MAX)?,
            peer: limit_peer.number(count(CONNECTIONS_PER_ADDRESS_MAX), u32::MAX)?,
            proxies_text: proxies.value.join(", "),
            trusted_proxies: networks(proxies)?,
            shared: redis_url.shared()?,
        })
    }

    /// A line for each.
    pub(super) fn describe(&self) -> String {
        let quota = |name, quota: &Sourced<Option<Quota>>| {
            let text = quota.value.map_or_else(|| "off".to_owned(), written);
            line(name, text, quota.source)
        };
        let number = |name, number: &Sourced<Option<u32>>, unit| {
            let text = number.value.map(|number| format!("{number}{unit}"));
            line(
                name,
                text.unwrap_or_else(|| "off".to_owned()),
                number.source,
            )
        };
        let streams = match self.streams.value {
            STREAMS_MAX => "off".to_owned(),
            streams => streams.to_string(),
        };
        let redis = self.shared.value.as_ref().map_or("none", |_| "(hidden)");
        [
            quota("limit_sessions", &self.sessions),
            quota("limit_commands", &self.commands),
            quota("limit_address", &self.address),
            number("limit_held", &self.held, ""),
            number("limit_share", &self.share, "%"),
            number("limit_checkouts", &self.checkouts, ""),
            quota("limit_lapses", &self.lapses),
            quota("limit_reads", &self.reads),
            quota("limit_keys", &self.keys),
            number("limit_leases", &self.leases, ""),
            quota("limit_acquires", &self.acquires),
            line("limit_streams", streams, self.streams.source),
            number("limit_connections", &self.connections, ""),
            number("limit_peer", &self.peer, ""),
            line(
                "trusted_proxies",
                &self.proxies_text,
                self.trusted_proxies.source,
            ),
            line("redis_url", redis, self.shared.source),
        ]
        .concat()
    }

    /// As the server takes them.
    pub(crate) fn rates(&self) -> RateLimits {
        RateLimits {
            sessions: self.sessions.value,
            commands: self.commands.value,
            address_commands: self.address.value,
            lapses: self.lapses.value,
            held: HeldLimits {
                units: self.held.value,
                share_percent: self.share.value,
                checkouts: self.checkouts.value,
            },
            reads: self.reads.value,
            keys: self.keys.value,
            acquires: self.acquires.value,
            trusted_proxies: self.trusted_proxies.value.clone(),
            shared: self
                .shared
                .value
                .clone()
                .map(|shared| shared as Arc<dyn SharedRates>),
        }
    }

    /// As the server takes them.
    pub(crate) fn accept(&self) -> AcceptLimits {
        let most = |limit: &Sourced<Option<u32>>| {
            let number = limit.value.and_then(|limit| usize::try_from(limit).ok());
            number.unwrap_or(usize::MAX)
        };
        AcceptLimits {
            connections_max: most(&self.connections),
            connections_per_address_max: most(&self.peer),
            ..AcceptLimits::default()
        }
    }

    /// Most live leases of a key, if there is a limit.
    pub(crate) fn leases(&self) -> Option<u32> {
        self.leases.value
    }

    /// Where servers count together, if they do.
    pub(crate) fn shared(&self) -> Option<Arc<RedisRates>> {
        self.shared.value.clone()
    }

    /// As the server takes them.
    pub(crate) fn streams(&self) -> StreamLimits {
        StreamLimits {
            total: self.accept().connections_max,
            per_address: self.streams.value,
        }
    }
}

/// A limit of the server as it can be given.
fn count(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}
