//! The stores of a server: ledger, shield and leases.

use std::sync::Arc;

use soldonce_engine::shield::RedisShield;

use super::Notes;
use crate::clear_text::ClearLink;
use crate::serve::ServeArgs;
use crate::serve::leases::LeaseChoice;
use crate::serve::ledger::LedgerPlace;
use crate::serve::shield::shield_between;

/// The stores that were chosen; none is connected yet.
pub(super) struct Stores {
    pub(super) ledger: LedgerPlace,
    pub(super) shield: Option<Arc<RedisShield>>,
    pub(super) leases: LeaseChoice,
    /// The links to other machines that are not encrypted.
    pub(super) clear_links: Vec<ClearLink>,
}

impl Stores {
    /// Chooses the stores. An error names the setting, and what would be right; it shows no
    /// address.
    pub(super) fn gather(args: &ServeArgs, notes: &mut Notes) -> anyhow::Result<Self> {
        let (database, data) = (args.database.url.as_ref(), &args.data);
        let mut ledger = LedgerPlace::new(Some(data.clone()), &args.database)?;
        if args.accept_loss {
            ledger = ledger.accept_loss();
        }
        let (redis, own) = (args.limits.redis_url.as_ref(), args.shield_url.as_ref());
        let shield = shield_between(args.shield, &ledger, (own, redis))?;
        let urls = &args.lease_url;
        let leases = LeaseChoice::new(urls.clone(), database.cloned(), data)?;
        let clear_links = [
            ClearLink::of("database_url", database),
            ClearLink::of("redis_url", redis),
            ClearLink::of("shield_url", own),
        ];
        let to_leases = urls.iter().map(|url| ClearLink::of("lease_url", Some(url)));
        let clear_links = clear_links.into_iter().chain(to_leases).flatten().collect();
        if database.is_some() {
            notes.insert("database_url", "(hidden; in place of data)".to_owned());
        }
        let word = shield.as_ref().map_or("local", |_| "redis");
        notes.insert("shield", word.to_owned());
        notes.insert("lease_url", leases.shown(!urls.is_empty()).to_owned());
        Ok(Self {
            ledger,
            shield,
            leases,
            clear_links,
        })
    }
}
