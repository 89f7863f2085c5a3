//! The messages to a backend and its answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{BackendError, FenceError, FencingToken, Name, Owner, Refusal, ReleaseOutcome};

/// The names of one grant: sorted, each once, possibly of a group. In Redis Cluster the names of a
/// group share one slot; without a group there is exactly one name.
#[expect(clippy::struct_field_names, reason = "they are the names")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Names {
    group: Option<Name>,
    names: Arc<[Name]>,
    /// Any one of them is asked for, whichever is free.
    any: bool,
}

impl Names {
    /// Wraps a single name outside all groups.
    pub fn one(name: Name) -> Self {
        Self {
            group: None,
            names: Arc::new([name]),
            any: false,
        }
    }

    /// Collects names of a group, all of which are asked for; sorts them and drops duplicates.
    pub fn of_group(group: Name, mut names: Vec<Name>) -> Self {
        names.sort_unstable();
        names.dedup();
        Self {
            group: Some(group),
            names: names.into(),
            any: false,
        }
    }

    /// Collects names of a group, any one of which is asked for; a lone one is asked for as such.
    pub fn any_of(group: Name, names: Vec<Name>) -> Self {
        let names = Self::of_group(group, names);
        Self {
            any: names.names.len() > 1,
            ..names
        }
    }

    /// Tells whether any one of the names is asked for, and not all.
    pub fn is_any(&self) -> bool {
        self.any
    }

    /// Selects the names for which `keep` is true; all of them are then asked for.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&Name) -> bool) -> Self {
        let names = self.names.iter().filter(|name| keep(name)).cloned();
        Self {
            group: self.group.clone(),
            names: names.collect(),
            any: false,
        }
    }

    /// Returns the group; `None` for a plain name.
    pub fn group(&self) -> Option<&Name> {
        self.group.as_ref()
    }

    /// Returns the names in order.
    pub fn as_slice(&self) -> &[Name] {
        &self.names
    }

    /// Returns the name that decides on the shard or connection: the group, else the name itself.
    pub fn routing_key(&self) -> Option<&Name> {
        self.group.as_ref().or_else(|| self.names.first())
    }
}

/// Writes the names with commas between them, as `group/a,b` where they have a group.
impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(group) = &self.group {
            write!(f, "{group}/")?;
        }
        let names: Vec<&str> = self.names.iter().map(Name::as_str).collect();
        f.write_str(&names.join(","))
    }
}

/// Identifies a waiter in a fair queue; drawn at random for each wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter(pub u64);

/// Where a grant must be stored before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// On the primary.
    #[default]
    Primary,
    /// The primary waits up to `within` for `n` replicas to have it too. Fewer is reported, never
    /// an error.
    Replicas {
        /// How many replicas.
        n: u32,
        /// How long to wait for them.
        within: Duration,
    },
}

/// Asks for a grant of all names, or of one of them.
///
/// An owner proves one grant: it is drawn for one set of names and never used for another one. A
/// backend may rely on that; what it answers to an owner that asks for other names is undefined,
/// but it must still keep every law for all other owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquire {
    /// All or none of them; or one, see [`Names::any_of`].
    pub names: Names,
    /// The owner of the grant.
    pub owner: Owner,
    /// How long it lives without renewal.
    pub ttl: Duration,
    /// How long it may live with all renewals, from now; `None` if there is no limit.
    pub cap: Option<Duration>,
    /// The token must be above this one.
    pub floor: Option<FencingToken>,
    /// The waiter, by which a fair queue knows its place.
    pub waiter: Option<Waiter>,
    /// Whether to keep a place in the queue if refused.
    pub fair: bool,
    /// Text kept with the grant for people who inspect it, at most 256 bytes.
    pub meta: String,
    /// Where the grant must be stored before the answer.
    pub durability: Durability,
}

/// Answers [`Acquire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireReply {
    /// The owner holds all names, or the one that was picked.
    Granted {
        /// The name that was picked, if any one was asked for.
        picked: Option<Name>,
        /// The token.
        token: FencingToken,
        /// Life left on the backend's clock: the ttl, less if a cap ends it, more if the owner had
        /// more.
        granted: Duration,
        /// Whether the owner held the names before it asked.
        again: bool,
        /// How many replicas have it, if that was asked for.
        replicas: Option<u32>,
    },
    /// The owner holds none. The refusal tells whether the waiter has a place in the queue.
    Refused(Refusal),
    /// The queue has no place left.
    QueueFull,
    /// The owner's cap is used up.
    CapReached,
    /// A new epoch was needed and not available. Nothing was granted.
    Epoch(FenceError),
    /// There is no answer from the backend itself.
    Failed(BackendError),
}

/// Asks to extend the life of one grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renew {
    /// All names of the grant.
    pub names: Names,
    /// The owner of the grant.
    pub owner: Owner,
    /// Its token.
    pub token: FencingToken,
    /// The least life asked for. It never shortens a life: zero changes nothing, and the answer is
    /// the life that is left.
    pub ttl: Duration,
}

/// Answers [`Renew`]. The worst of the grant's names decides: `Taken` is worse than `Gone`, `Gone`
/// worse than `Capped`. Of several other owners the one with the highest token is returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenewReply {
    /// Every name lives for this long on the backend's clock.
    Renewed {
        /// Life left.
        granted: Duration,
    },
    /// A name has no owner.
    Gone,
    /// A name has another owner.
    Taken {
        /// The token of that owner.
        by: FencingToken,
    },
    /// The cap is used up.
    Capped,
    /// There is no answer from the backend itself.
    Failed(BackendError),
}

/// Asks to end one grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// All names of the grant.
    pub names: Names,
    /// The owner of the grant.
    pub owner: Owner,
    /// Its token; `None` if the acquire was never answered: then the owner alone decides.
    pub token: Option<FencingToken>,
    /// The waiter whose place in the queue to give up.
    pub waiter: Option<Waiter>,
}

/// Answers [`Release`]. What was the owner's is free afterwards; the worst name decides the answer:
/// `Taken` is worse than `Gone`. Of several other owners the highest token is returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseReply {
    /// Every name was the owner's.
    Released,
    /// A name had no owner any more.
    Gone,
    /// A name has another owner, who keeps it.
    Taken {
        /// The token of that owner.
        by: FencingToken,
    },
    /// There is no answer from the backend itself.
    Failed(BackendError),
}

impl ReleaseReply {
    pub(crate) fn outcome(self) -> Result<ReleaseOutcome, BackendError> {
        match self {
            ReleaseReply::Released => Ok(ReleaseOutcome::Released),
            ReleaseReply::Gone => Ok(ReleaseOutcome::AlreadyGone),
            ReleaseReply::Taken { by } => Ok(ReleaseOutcome::TakenBy(by)),
            ReleaseReply::Failed(error) => Err(error),
        }
    }
}

/// The holder of a name, as the backend knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The holder's secret.
    pub owner: Owner,
    /// The token of the grant.
    pub token: FencingToken,
    /// How long it has been held, on the backend's clock.
    pub held: Duration,
    /// Life left without renewal.
    pub remaining: Duration,
    /// Life left with all renewals; `None` if there is no limit.
    pub cap: Option<Duration>,
    /// The text that the holder put into its request.
    pub meta: String,
}
