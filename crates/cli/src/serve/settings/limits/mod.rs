//! How often callers may ask, whose word about addresses counts, and where servers count together.

mod given;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use clap::Args;
use soldonce_engine::rate::{Quota, RedisRates, SharedRates};
use soldonce_server::limits::{
    RATE_COMMANDS_PER_MINUTE, RATE_READS_PER_MINUTE, RATE_SESSIONS_PER_MINUTE, STREAMS_MAX,
};
use soldonce_server::{Network, RateLimits, StreamLimits};

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
    /// Reads, and requests with wrong credentials, of one address [default: 6000/1m]
    #[arg(long, env = "SOLDONCE_LIMIT_READS", value_name = "N/TIME")]
    limit_reads: Option<String>,
    /// Requests of one API key [default: off]
    #[arg(long, env = "SOLDONCE_LIMIT_KEYS", value_name = "N/TIME")]
    limit_keys: Option<String>,
    /// Feed streams that one address may have open [default: 256]
    #[arg(long, env = "SOLDONCE_LIMIT_STREAMS", value_name = "N")]
    limit_streams: Option<String>,
    /// Proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8; may be given several times
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
    reads: Sourced<Option<Quota>>,
    keys: Sourced<Option<Quota>>,
    streams: Sourced<usize>,
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
        let sessions = given(
            "limit_sessions",
            &args.limit_sessions,
            &mut file.limit_sessions,
        );
        let commands = given(
            "limit_commands",
            &args.limit_commands,
            &mut file.limit_commands,
        );
        let reads = given("limit_reads", &args.limit_reads, &mut file.limit_reads);
        let keys = given("limit_keys", &args.limit_keys, &mut file.limit_keys);
        let streams = given(
            "limit_streams",
            &args.limit_streams,
            &mut file.limit_streams,
        );
        let redis = given("redis_url", &args.redis_url, &mut file.redis_url);
        Ok(Self {
            sessions: sessions.quota(Some(RATE_SESSIONS_PER_MINUTE))?,
            commands: commands.quota(Some(RATE_COMMANDS_PER_MINUTE))?,
            reads: reads.quota(Some(RATE_READS_PER_MINUTE))?,
            keys: keys.quota(None)?,
            streams: streams.streams()?,
            proxies_text: proxies.value.join(", "),
            trusted_proxies: networks(proxies)?,
            shared: redis.shared()?,
        })
    }

    /// A line for each.
    pub(super) fn describe(&self) -> String {
        let quota = |name, quota: &Sourced<Option<Quota>>| {
            let text = quota.value.map_or_else(|| "off".to_owned(), written);
            line(name, text, quota.source)
        };
        let streams = match self.streams.value {
            STREAMS_MAX => "off".to_owned(),
            streams => streams.to_string(),
        };
        let redis = self.shared.value.as_ref().map_or("none", |_| "(hidden)");
        [
            quota("limit_sessions", &self.sessions),
            quota("limit_commands", &self.commands),
            quota("limit_reads", &self.reads),
            quota("limit_keys", &self.keys),
            line("limit_streams", streams, self.streams.source),
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
            reads: self.reads.value,
            keys: self.keys.value,
            trusted_proxies: self.trusted_proxies.value.clone(),
            shared: self
                .shared
                .value
                .clone()
                .map(|shared| shared as Arc<dyn SharedRates>),
        }
    }

    /// Where servers count together, if they do.
    pub(crate) fn shared(&self) -> Option<Arc<RedisRates>> {
        self.shared.value.clone()
    }

    /// As the server takes them.
    pub(crate) fn streams(&self) -> StreamLimits {
        StreamLimits {
            per_address: self.streams.value,
            ..StreamLimits::default()
        }
    }
}
