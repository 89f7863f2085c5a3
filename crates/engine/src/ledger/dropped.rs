//! The row that remains of an event that was over and was dropped.

use serde::Serialize;
use soldonce_core::{Actor, Origin, Seq, Timestamp};

use crate::hex::hex;
use crate::reply::Rfc3339;

/// The row that remains of a dropped event. The counts are those of rows deleted so far.
#[derive(Clone, Debug)]
pub struct Tombstone {
    pub at: Timestamp,
    /// Who dropped it, in which request.
    pub origin: Origin,
    /// The number of its last commit.
    pub seq: Seq,
    /// Where the hash chain of its audit ended.
    pub hash: [u8; 32],
    pub units: u64,
    pub bookings: u64,
    pub transitions: u64,
    /// Whether all its rows are deleted.
    pub is_cleared: bool,
}

/// A [`Tombstone`] as JSON, for people.
#[derive(Serialize)]
pub struct TombstoneBody<'a> {
    pub dropped_at: Rfc3339,
    /// The caller's id, or `system`.
    pub actor: String,
    pub request_id: &'a str,
    /// The number of its last commit.
    pub seq: u64,
    /// The end of its chain, hexadecimal.
    pub hash: String,
    /// Unit rows that were deleted.
    pub units: u64,
    /// Bookings that were deleted.
    pub bookings: u64,
    /// Rows of the audit that were deleted.
    pub transitions: u64,
    /// Whether all rows of the event are deleted.
    pub is_cleared: bool,
}

impl Tombstone {
    /// Creates the row of an event dropped at `at`, whose chain ended with this number and hash.
    pub(crate) fn new(at: Timestamp, origin: Origin, (seq, hash): (Seq, [u8; 32])) -> Self {
        Self {
            at,
            origin,
            seq,
            hash,
            units: 0,
            bookings: 0,
            transitions: 0,
            is_cleared: false,
        }
    }

    /// Returns the tombstone as it is shown to people.
    pub fn body(&self) -> TombstoneBody<'_> {
        TombstoneBody {
            dropped_at: Rfc3339(self.at),
            actor: match self.origin.actor {
                Actor::Caller(id) => id.to_string(),
                Actor::System => "system".to_owned(),
            },
            request_id: &self.origin.request,
            seq: self.seq.0,
            hash: hex(&self.hash),
            units: self.units,
            bookings: self.bookings,
            transitions: self.transitions,
            is_cleared: self.is_cleared,
        }
    }
}
