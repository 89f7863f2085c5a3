//! The audit's hash chain: one for each event, over every transition in the order of its commits.

use sha2::{Digest, Sha256};
use soldonce_core::{
    Actor, CallerId, Cause, Commit, Event, EventNo, Origin, Seq, Text, Timestamp, Transition,
};

use super::Damaged;
use super::codes::number;
use super::column::Column;
use super::reader::{Get, Reader};
use super::units::put_state;

/// Computes the first hash of an event's chain from its number, id, creation and fingerprint, so
/// that no chain can pass for another event's.
pub(crate) fn start(event: &Event) -> [u8; 32] {
    let id = event.id.as_str();
    start_of(event.no, id, event.created_at, &event.fingerprint)
}

/// Computes the same from columns of the event's row, of which the others need not be readable.
pub(crate) fn start_of(
    no: EventNo,
    id: &str,
    created_at: Timestamp,
    fingerprint: &[u8],
) -> [u8; 32] {
    let mut sha = Sha256::new();
    sha.update(b"soldonce audit 1");
    sha.update(no.0.to_be_bytes());
    sha.update(id.as_bytes());
    sha.update([0]);
    sha.update(created_at.ms().to_be_bytes());
    sha.update(fingerprint);
    sha.finalize().into()
}

/// Computes the hash after one more row. `bytes` is a buffer that is used again for each row.
pub(crate) fn next(before: [u8; 32], row: &AuditRow<'_>, bytes: &mut Vec<u8>) -> [u8; 32] {
    bytes.clear();
    row.put().iter().for_each(|column| column.hash_into(bytes));
    let mut sha = Sha256::new();
    sha.update(before);
    sha.update(bytes);
    sha.finalize().into()
}

/// One transition with the fields of its commit: a row of the audit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditRow<'a> {
    pub(crate) event: EventNo,
    pub(crate) seq: Seq,
    /// Its index in the commit.
    pub(crate) n: u32,
    pub(crate) at: Timestamp,
    pub(crate) step: &'a Transition,
    pub(crate) origin: &'a Origin,
    pub(crate) reason: Option<&'a Text>,
}

impl<'a> AuditRow<'a> {
    /// Lists the audit rows of a commit, one for each transition.
    pub(crate) fn of(commit: &'a Commit) -> impl Iterator<Item = Self> {
        (0..).zip(&commit.transitions).map(|(n, step)| Self {
            event: commit.event,
            seq: commit.seq,
            n,
            at: commit.at,
            step,
            origin: &commit.origin,
            reason: commit.reason.as_ref(),
        })
    }

    /// Returns the columns of the row, in the order in which they are hashed.
    pub(crate) fn put(&self) -> [Column<'a>; 18] {
        let step = self.step;
        let [from, from_owner, from_until] = put_state(step.from);
        let [to, to_owner, to_until] = put_state(step.to);
        let [actor, request] = put_origin(self.origin);
        [
            Column::Small(self.event.0),
            Column::Count(self.seq.0),
            Column::Small(self.n),
            Column::Long(self.at.ms()),
            Column::Small(step.unit.0),
            from,
            from_owner,
            from_until,
            to,
            to_owner,
            to_until,
            Column::Count(step.fence.0),
            Column::Count(step.version.0),
            Column::Code(number(&Cause::ALL, &step.cause)),
            Column::OptId(step.hold.map(|hold| *hold.bytes())),
            actor,
            request,
            Column::OptText(self.reason.map(Text::as_str)),
        ]
    }
}

/// Reads the transition of a row: the columns `unit_no` to `hold`.
pub(crate) fn get_step(row: &mut Reader<'_>) -> Result<Transition, Damaged> {
    Ok(Transition {
        unit: row.get()?,
        from: row.get()?,
        to: row.get()?,
        fence: row.get()?,
        version: row.get()?,
        cause: row.code(&Cause::ALL)?,
        hold: row.get()?,
    })
}

impl<'a> Get<'a> for Origin {
    fn get(row: &mut Reader<'a>) -> Result<Self, Damaged> {
        let caller: Option<CallerId> = row.get()?;
        Ok(Self {
            actor: caller.map_or(Actor::System, Actor::Caller),
            request: row.get::<&str>()?.into(),
        })
    }
}

/// Returns the columns of an origin: the actor's id, NULL for the system, and the request id.
pub(crate) fn put_origin(origin: &Origin) -> [Column<'_>; 2] {
    let caller = match origin.actor {
        Actor::Caller(caller) => Some(*caller.bytes()),
        Actor::System => None,
    };
    [Column::OptId(caller), Column::Text(&origin.request)]
}
