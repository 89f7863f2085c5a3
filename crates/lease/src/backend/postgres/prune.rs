//! Deletes rows that were unused for a day, so that old names take no space.

use tokio_postgres::types::Type;

use super::link::CONNECT_LEAST;
use super::{Link, Postgres};
use crate::Owner;
use crate::locks::lock;

/// One grant in this many is followed by a prune.
const GRANTS_PER_PRUNE: u128 = 1_024;

/// Skips rows that another transaction has locked: they are not idle. Deletes more rows at once
/// than were made since the last time, so the table cannot grow without bound.
const PRUNE: &str = "\
-- lease_prune
DELETE FROM soldonce_lease d USING (
    SELECT l.name FROM soldonce_lease l
    WHERE l.ns = $1 AND l.expires_at < clock_timestamp() - interval '1 day'
    LIMIT 65536 FOR UPDATE SKIP LOCKED
) idle WHERE d.ns = $1 AND d.name = idle.name";

/// Deletes idle rows in the background after this grant, or not. The bits of the owner decide, so
/// it needs neither a timer nor a counter, and processes that live for one grant do their share.
pub(super) fn sometimes(backend: &Postgres, owner: Owner) {
    if !u128::from_be_bytes(owner.expose()).is_multiple_of(GRANTS_PER_PRUNE) {
        return;
    }
    let namespace = backend.namespace.clone();
    // A connection of its own: it reads the whole table, and no other call should wait for that.
    let limit = backend.call_timeout.max(CONNECT_LEAST);
    let link = Link::new(backend.config.clone(), backend.clock.clone(), limit);
    let mut pruning = lock(&backend.pruning);
    while pruning.try_join_next().is_some() {}
    pruning.spawn(async move {
        let params = [(&namespace.as_str() as _, Type::TEXT)];
        if let Err(error) = link.query(PRUNE, &params).await {
            tracing::debug!(%error, "idle leases were not pruned");
        }
    });
}
