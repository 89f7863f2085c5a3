//! The memory of an event for commands that go one at a time: one has it at a time, and who waits for it
//! shares what comes of the read before: its rows, or that the database says nothing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use soldonce_core::Rejection;
use tokio::sync::MutexGuard;

use super::errand::Errand;
use crate::ledger::Done;
use crate::ledger::postgres::desk::replay;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::ANSWER_MS;
use crate::ledger::postgres::replica::{Named, Replica};

/// What had become of the memory when somebody began to wait for it.
pub(super) struct Since {
    reads_begun: u64,
    silences: u64,
}

impl Errand<'_> {
    /// The memory, once nobody else has it, and what had been read of it before the wait.
    pub(super) async fn memory(&self) -> (MutexGuard<'_, Replica>, Since) {
        let since = Since {
            reads_begun: self.booth.reads_begun.load(Ordering::Acquire),
            silences: self.booth.silences.load(Ordering::Acquire),
        };
        (self.booth.replica.lock().await, since)
    }

    pub(super) fn was_read(&self, since: &Since) -> bool {
        self.booth.read_last.load(Ordering::Acquire) > since.reads_begun
    }

    /// Whether the database said nothing to somebody who had the memory meanwhile. Everybody behind
    /// has waited as long, and would wait again, one after the other.
    pub(super) fn was_silent(&self, since: &Since) -> bool {
        self.booth.silences.load(Ordering::Acquire) > since.silences
    }

    /// Reads the memory anew, unless somebody else did so meanwhile. Gives what was answered to the
    /// same request before.
    pub(super) async fn read(
        &self,
        replica: &mut Replica,
        named: &Named,
        since: &Since,
    ) -> Result<Option<Result<Done, Rejection>>, Failure> {
        let is_enough = self.was_read(since) && !replica.is_cold() && replica.knows(named);
        if is_enough && self.asked.key.is_none() {
            return Ok(None);
        }
        let asked = Box::pin(async {
            let mut lane = self.desk.database.lane().await?;
            if !is_enough {
                let refresh = self.desk.refresh(&mut lane, self.booth, replica, named);
                refresh.await?;
            }
            let Some(key) = self.asked.key else {
                return Ok(None);
            };
            let records = self.desk.records(&mut lane, &[key]).await?;
            Ok(records.first().map(|record| replay(record, key)))
        });
        self.listen(asked).await
    }

    /// What comes of a read of the memory; a database that says nothing is noted.
    pub(super) async fn listen<T>(
        &self,
        read: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let begun = self.desk.clock.boot();
        let read = read.await;
        let is_long = self.desk.clock.boot().since(begun) >= Duration::from_millis(ANSWER_MS);
        if read.is_err() && is_long {
            self.booth.silences.fetch_add(1, Ordering::AcqRel);
        }
        read
    }
}
