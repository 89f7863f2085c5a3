//! The head row: the number of commits, their running hash, the latest time.

use rusqlite::Connection;
use sha2::{Digest, Sha256};
use soldonce_core::{EventNo, Timestamp};

use super::audit::Chain;
use super::{first_row, summed};
use crate::ledger::rows::column::Column;
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::Fault;

const TABLE: &str = "head";

statements! {
    INSERT_HEAD = "-- insert_head
INSERT INTO head (one, commits, hash, clock, checksum) VALUES (1, ?1, ?2, ?3, ?4)";

    UPDATE_HEAD = "-- update_head
UPDATE head SET commits = ?1, hash = ?2, clock = ?3, checksum = ?4
WHERE one = 1 AND commits = ?1 - 1 AND clock <= ?3";

    SET_HEAD_BACK = "-- set_head_back
UPDATE head SET commits = ?1, hash = ?2, clock = ?3, checksum = ?4
WHERE one = 1 AND commits = ?1 - 1 AND clock > ?3";

    HEAD = "-- head
SELECT commits, hash, clock, checksum FROM head WHERE one = 1";
}

/// The number, the running hash and the latest time of a ledger's commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) commits: u64,
    /// The running hash of all of them.
    pub(crate) hash: [u8; 32],
    /// The latest time of a commit.
    pub(crate) clock: Timestamp,
}

impl Head {
    /// Creates the head of a ledger without commits; `seed` is random and tells it from any other.
    pub(crate) fn start(seed: [u8; 32]) -> Self {
        Self {
            commits: 0,
            hash: seed,
            clock: Timestamp::ZERO,
        }
    }

    /// Returns the head after one more commit at `clock`, which appended to the chains `moved`.
    #[must_use]
    pub(crate) fn then<'a>(
        self,
        clock: Timestamp,
        moved: impl Iterator<Item = (EventNo, &'a Chain)>,
    ) -> Self {
        let commits = self.commits.saturating_add(1);
        let mut sha = Sha256::new();
        sha.update(self.hash);
        sha.update(commits.to_be_bytes());
        sha.update(clock.ms().to_be_bytes());
        for (event, chain) in moved {
            sha.update(event.0.to_be_bytes());
            sha.update(chain.hash);
        }
        Self {
            commits,
            hash: sha.finalize().into(),
            clock: self.clock.max(clock),
        }
    }

    /// Returns the head after a correction of the clock back to `clock`, a commit of its own.
    #[must_use]
    pub(crate) fn set_back(self, clock: Timestamp) -> Self {
        let next = self.then(clock, std::iter::empty());
        Self { clock, ..next }
    }

    /// Writes the first row.
    pub(crate) fn insert(&self, connection: &Connection) -> Result<(), Fault> {
        self.write(connection, INSERT_HEAD)
    }

    /// Updates the row; fails unless it was one commit behind.
    pub(crate) fn update(&self, connection: &Connection) -> Result<(), Fault> {
        self.write(connection, UPDATE_HEAD)
    }

    /// Updates the row after [`Head::set_back`]; fails unless it was one commit behind.
    pub(crate) fn write_set_back(&self, connection: &Connection) -> Result<(), Fault> {
        self.write(connection, SET_HEAD_BACK)
    }

    fn write(&self, connection: &Connection, sql: &'static str) -> Result<(), Fault> {
        let (commits, clock) = (Column::Count(self.commits), Column::Long(self.clock.ms()));
        let row = [commits, Column::Bytes(&self.hash), clock];
        summed::write(connection, sql, TABLE, &row)
    }

    /// Reads the row; none in a new file.
    pub(crate) fn find(connection: &Connection) -> Result<Option<Self>, Fault> {
        let get = |row: &mut Reader<'_>| {
            Ok(Self {
                commits: row.get()?,
                hash: row.get()?,
                clock: row.get()?,
            })
        };
        let name = |_: &Self| "the head".to_owned();
        first_row(connection, HEAD, [], |row| {
            summed::read(row, TABLE, get, name)
        })
    }
}
