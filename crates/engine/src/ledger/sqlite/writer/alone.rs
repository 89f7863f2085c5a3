//! Jobs that touch no event: keys and epochs. Each has a commit of its own.

use rusqlite::{Connection, TransactionBehavior};

use soldonce_core::Timestamp;

use super::{Reply, Writer};
use crate::keys::{ApiKey, KeyId};
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::sqlite::tables::{epochs, keys};

/// Such a job.
pub(crate) enum Alone {
    AddKey(ApiKey, Reply<()>),
    RevokeKey(KeyId, Timestamp, Reply<bool>),
    /// The next epoch of a lease namespace above this one; none when all are used.
    NextEpoch(String, u32, Reply<Option<u32>>),
}

impl Writer {
    pub(super) fn alone(&mut self, job: Alone) -> Result<(), Fault> {
        match job {
            Alone::AddKey(key, reply) => {
                tell(reply, self.own_commit(|tables| keys::insert(tables, &key))?);
            }
            Alone::RevokeKey(key, at, reply) => {
                tell(
                    reply,
                    self.own_commit(|tables| keys::revoke(tables, key, at))?,
                );
            }
            Alone::NextEpoch(namespace, above, reply) => {
                let next = |tables: &_| epochs::next(tables, &namespace, above);
                tell(reply, self.own_commit(next)?);
            }
        }
        Ok(())
    }

    fn own_commit<T>(
        &mut self,
        write: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.checkpointer.state()?;
        let now = self.read_clock();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let written = write(&transaction)?;
        self.ends.head = self.ends.head.then(now, std::iter::empty());
        self.ends.head.update(&transaction)?;
        transaction.commit()?;
        self.high_water.write(&self.ends.head)?;
        Ok(written)
    }
}

fn tell<T>(reply: Reply<T>, value: T) {
    if reply.send(Ok(value)).is_err() {
        tracing::trace!("nobody waits for the answer");
    }
}
