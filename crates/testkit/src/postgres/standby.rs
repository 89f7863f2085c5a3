//! A primary and its asynchronous standby.

use anyhow::{Result, ensure};

use super::Postgres;
use crate::server::{PATIENCE, until};

const WRITTEN: &str = "-- written\nSELECT pg_current_wal_flush_lsn()";
const FORGET_PRIMARY: &str = "-- forget_primary\nALTER SYSTEM SET primary_conninfo = ''";
const RELOAD: &str = "-- reload\nSELECT pg_reload_conf()";
const RECEIVERS: &str = "-- receivers\nSELECT count(*) FROM pg_stat_wal_receiver";
const PROMOTE: &str = "-- promote\nSELECT pg_promote(true, 20)";

/// A primary and its standby, which replicates asynchronously.
#[derive(Debug)]
pub struct PostgresPair {
    /// Takes writes.
    pub primary: Postgres,
    /// Follows and answers reads, until [`PostgresPair::promote`].
    pub standby: Postgres,
}

impl PostgresPair {
    /// Starts both and waits until the standby follows. Both are copies of the same fresh cluster,
    /// so the standby needs no backup to begin with.
    pub fn start() -> Result<Self> {
        let primary = Postgres::start()?;
        let standby = Postgres::options().standby_of(primary.address()).start()?;
        let pair = Self { primary, standby };
        pair.await_sync()?;
        Ok(pair)
    }

    /// Waits until the standby shows all that the primary has committed so far.
    pub fn await_sync(&self) -> Result<()> {
        let position = self.primary.query(WRITTEN)?;
        let sql = format!("-- replayed\nSELECT pg_last_wal_replay_lsn() >= '{position}'");
        until("the standby follows", PATIENCE, || {
            self.standby.query(&sql).is_ok_and(|answer| answer == "t")
        })
    }

    /// Clears `primary_conninfo` of the standby, which then receives nothing more: what the
    /// primary commits from now on is lost to a later [`PostgresPair::promote`].
    pub fn cut(&self) -> Result<()> {
        self.standby.query(FORGET_PRIMARY)?;
        self.standby.query(RELOAD)?;
        until("the standby stops receiving", PATIENCE, || {
            self.standby
                .query(RECEIVERS)
                .is_ok_and(|answer| answer == "0")
        })
    }

    /// Makes the standby a primary and waits up to 20 s until it takes writes.
    pub fn promote(&self) -> Result<()> {
        let promoted = self.standby.query(PROMOTE)?;
        ensure!(
            promoted == "t",
            "the standby was not promoted within a minute"
        );
        Ok(())
    }
}
