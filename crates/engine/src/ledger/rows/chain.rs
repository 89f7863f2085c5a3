//! The audit's hash chain: one for each event, over every transition in the order of its commits.

use sha2::{Digest, Sha256};
use soldonce_core::{
    Actor, Cause, Commit, Event, EventNo, Origin, Seq, Text, Timestamp, Transition,
};

use super::codes::{StateColumns, number};

/// The hash of an event without commits: it begins with what the event is, so that no chain can
/// stand for another.
pub(crate) fn start(event: &Event) -> [u8; 32] {
    let mut sha = Sha256::new();
    sha.update(b"soldonce audit 1");
    sha.update(event.no.0.to_be_bytes());
    sha.update(event.id.as_str().as_bytes());
    sha.update([0]);
    sha.update(event.created_at.ms().to_be_bytes());
    sha.update(event.fingerprint);
    sha.finalize().into()
}

/// The hash behind one more row. `bytes` is filled again and again.
pub(crate) fn next(before: [u8; 32], row: &AuditRow<'_>, bytes: &mut Vec<u8>) -> [u8; 32] {
    bytes.clear();
    row.canonical(bytes);
    let mut sha = Sha256::new();
    sha.update(before);
    sha.update(bytes);
    sha.finalize().into()
}

/// One transition with what its commit says of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditRow<'a> {
    /// Of which event.
    pub(crate) event: EventNo,
    /// Of which commit.
    pub(crate) seq: Seq,
    /// Its place in the commit.
    pub(crate) n: i64,
    /// When.
    pub(crate) at: Timestamp,
    /// What happened.
    pub(crate) step: &'a Transition,
    /// Who asked.
    pub(crate) origin: &'a Origin,
    /// Staff's reason.
    pub(crate) reason: Option<&'a Text>,
}

impl<'a> AuditRow<'a> {
    /// The rows of a commit.
    pub(crate) fn of(commit: &'a Commit) -> impl Iterator<Item = Self> {
        (0_i64..).zip(&commit.transitions).map(|(n, step)| Self {
            event: commit.event,
            seq: commit.seq,
            n,
            at: commit.at,
            step,
            origin: &commit.origin,
            reason: commit.reason.as_ref(),
        })
    }

    /// The caller; none for the engine itself.
    pub(crate) fn actor(&self) -> Option<[u8; 16]> {
        match self.origin.actor {
            Actor::Caller(caller) => Some(*caller.bytes()),
            Actor::System => None,
        }
    }

    /// The bytes under the hash: integers as eight bytes, texts and ids after their length, NULL as
    /// a length of -1; high bytes first; columns in the order of the table.
    fn canonical(&self, to: &mut Vec<u8>) {
        let Transition {
            unit,
            from,
            to: after,
            fence,
            version,
            cause,
            hold,
        } = self.step;
        let int = |to: &mut Vec<u8>, value: i64| to.extend(value.to_be_bytes());
        int(to, i64::from(self.event.0));
        to.extend(self.seq.0.to_be_bytes());
        int(to, self.n);
        int(to, self.at.ms());
        int(to, i64::from(unit.0));
        for columns in [StateColumns::from(*from), StateColumns::from(*after)] {
            int(to, columns.state);
            put(to, columns.owner.as_ref().map(<[u8; 16]>::as_slice));
            put(
                to,
                columns
                    .until
                    .map(i64::to_be_bytes)
                    .as_ref()
                    .map(<[u8; 8]>::as_slice),
            );
        }
        to.extend(fence.0.to_be_bytes());
        to.extend(version.0.to_be_bytes());
        int(to, number(&Cause::ALL, cause));
        put(to, hold.as_ref().map(|hold| hold.bytes().as_slice()));
        put(to, self.actor().as_ref().map(<[u8; 16]>::as_slice));
        put(to, Some(self.origin.request.as_bytes()));
        put(to, self.reason.map(|reason| reason.as_str().as_bytes()));
    }
}

fn put(to: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            to.extend(length.to_be_bytes());
            to.extend(bytes);
        }
        None => to.extend((-1_i64).to_be_bytes()),
    }
}
