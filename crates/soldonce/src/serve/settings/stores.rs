//! Where a server keeps what it knows: ledger, shield and leases.

use std::path::PathBuf;

use soldonce_engine::ledger::postgres::PostgresOptions;

use super::file::SettingsFile;
use super::source::{Report, first, given, hidden, path, word};
use crate::clear_text::ClearLink;
use crate::serve::ServeArgs;
use crate::serve::leases::LeaseChoice;
use crate::serve::ledger::{DatabaseArgs, LedgerPlace, StatementsWord};
use crate::serve::shield::{Shared, ShieldPlace, ShieldRedis};

/// The places, nothing connected yet.
pub(super) struct Stores {
    pub(super) ledger: LedgerPlace,
    pub(super) shield: ShieldPlace,
    pub(super) leases: LeaseChoice,
    /// The links to other machines that are not encrypted.
    pub(super) clear_links: Vec<ClearLink>,
}

impl Stores {
    /// # Errors
    /// Names the setting, and what would be right; shows no address.
    pub(super) fn gather(
        args: &ServeArgs,
        file: &mut SettingsFile,
        report: &mut Report,
    ) -> anyhow::Result<Self> {
        let data = (args.data.clone(), file.data.take());
        let data = report.value("data", data, PathBuf::from("./data"), path);
        let database = database(&args.database, file, report);
        let mut ledger = LedgerPlace::new(Some(data.clone()), &database)?;
        if args.accept_loss {
            ledger = ledger.accept_loss();
        }
        let redis = args.limits.redis_url.clone().or(file.redis_url.clone());
        let (chosen, chosen_by) = first(args.shield.shield, file.shield);
        let (own, own_by) = first(args.shield.shield_url.clone(), file.shield_url.take());
        let shared = match database.url {
            Some(_) => Shared::Yes,
            None => Shared::No,
        };
        let place = ShieldRedis::first(own.as_deref(), redis.as_deref());
        let shield = ShieldPlace::new(chosen, shared, place)?;
        report.note("shield", &word(&shield.word), chosen_by);
        let own_shown = own.as_ref().map_or("that of redis_url".to_owned(), hidden);
        report.note("shield_url", &own_shown, own_by);
        let (urls, urls_by) = first(given(&args.leases.lease_url), file.lease_url.take());
        let is_given = urls.is_some();
        let urls = urls.unwrap_or_default();
        let clear_links = [
            ClearLink::of("database_url", database.url.as_ref()),
            ClearLink::of("redis_url", redis.as_ref()),
            ClearLink::of("shield_url", own.as_ref()),
        ];
        let to_leases = urls.iter().map(|url| ClearLink::of("lease_url", Some(url)));
        let clear_links = clear_links.into_iter().chain(to_leases).flatten().collect();
        let leases = LeaseChoice::new(urls, database.url, &data)?;
        report.note("lease_url", leases.shown(is_given), urls_by);
        Ok(Self {
            ledger,
            shield,
            leases,
            clear_links,
        })
    }
}

fn database(args: &DatabaseArgs, file: &mut SettingsFile, report: &mut Report) -> DatabaseArgs {
    let hidden = |_: &String| "(hidden; in place of data)".to_owned();
    let urls = (args.url.clone(), file.database_url.take());
    DatabaseArgs {
        url: report.option("database_url", urls, "none", hidden),
        connections: report.option(
            "database_connections",
            (args.connections, file.database_connections),
            &PostgresOptions::new("").connections.to_string(),
            usize::to_string,
        ),
        statements: report.option(
            "database_statements",
            (args.statements, file.database_statements),
            &word(&StatementsWord::Prepared),
            word,
        ),
    }
}
