//! The settings file: TOML, its keys the long names of the flags.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

use super::{AdminKey, CookieWord, FeedWord, FreeSales, LogFormat, Shoppers};
use crate::serve::ledger::StatementsWord;
use crate::serve::payments::CaptureWord;
use crate::serve::shield::ShieldWord;
use crate::serve::webhooks::WebhookWord;

/// The settings file. An unknown key stops the start.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingsFile {
    pub(super) listen: Option<String>,
    pub(super) admin_listen: Option<String>,
    pub(super) tls_cert: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
    pub(super) data: Option<PathBuf>,
    pub(super) database_url: Option<String>,
    pub(super) database_connections: Option<usize>,
    pub(super) database_statements: Option<StatementsWord>,
    pub(super) admin_key: Option<AdminKey>,
    pub(super) shoppers: Option<Shoppers>,
    pub(super) cookie: Option<CookieWord>,
    pub(super) free_sales: Option<FreeSales>,
    pub(super) origins: Option<Vec<String>>,
    pub(super) keep_ended_events: Option<String>,
    pub(super) log_format: Option<LogFormat>,
    pub(super) limit_sessions: Option<String>,
    pub(super) limit_commands: Option<String>,
    pub(super) limit_address: Option<String>,
    pub(super) limit_held: Option<String>,
    pub(super) limit_share: Option<String>,
    pub(super) limit_checkouts: Option<String>,
    pub(super) limit_lapses: Option<String>,
    pub(super) limit_reads: Option<String>,
    pub(super) limit_keys: Option<String>,
    pub(super) limit_leases: Option<String>,
    pub(super) limit_acquires: Option<String>,
    pub(super) limit_streams: Option<String>,
    pub(super) limit_connections: Option<String>,
    pub(super) limit_peer: Option<String>,
    pub(super) trusted_proxies: Option<Vec<String>>,
    pub(super) feed: Option<FeedWord>,
    pub(super) feed_tick_ms: Option<u64>,
    pub(super) redis_url: Option<String>,
    pub(super) shield: Option<ShieldWord>,
    pub(super) shield_url: Option<String>,
    pub(super) lease_url: Option<Vec<String>>,
    pub(super) stripe_key: Option<String>,
    pub(super) stripe_webhook_secret: Option<Vec<String>>,
    pub(super) stripe_account: Option<String>,
    pub(super) stripe_capture: Option<CaptureWord>,
    pub(super) stripe_url: Option<String>,
    pub(super) webhook_destinations: Option<WebhookWord>,
}

/// Reads a settings file.
///
/// # Errors
/// When it cannot be read, or a key or value in it is wrong; the error names it.
pub(super) fn read(path: &Path) -> anyhow::Result<SettingsFile> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the settings file {} cannot be read", path.display()))?;
    toml::from_str(&text).with_context(|| format!("the settings file {} is wrong", path.display()))
}
