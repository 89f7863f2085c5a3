//! What is asked of a backend and what it answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{BackendError, FenceError, FencingToken, Name, Owner, Refusal};

/// The names of one grant: sorted, each once, possibly of a group. In Redis Cluster the names of a
/// group share one slot; without a group there is exactly one name.
#[expect(clippy::struct_field_names, reason = "they are the names")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Names {
    group: Option<Name>,
    names: Arc<[Name]>,
    /// One of them is asked for, whichever is free.
    any: bool,
}

impl Names {
    /// A single name outside all groups.
    pub fn one(name: Name) -> Self {
        Self {
            group: None,
            names: Arc::new([name]),
            any: false,
        }
    }

    /// Names of a group; sorted, doubles dropped.
    pub fn of_group(group: Name, mut names: Vec<Name>) -> Self {
        names.sort_unstable();
        names.dedup();
        Self {
            group: Some(group),
            names: names.into(),
            any: false,
        }
    }

    /// One of the names of a group, whichever is free.
    pub fn any_of(group: Name, names: Vec<Name>) -> Self {
        let names = Self::of_group(group, names);
        Self {
            any: names.names.len() > 1,
            ..names
        }
    }

    /// Whether one of the names is asked for, and not all.
    pub fn is_any(&self) -> bool {
        self.any
    }

    /// Those of the names that `keep` wants, all of them.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&Name) -> bool) -> Self {
        Self {
            group: self.group.clone(),
            names: self
                .names
                .iter()
                .filter(|name| keep(name))
                .cloned()
                .collect(),
            any: false,
        }
    }

    /// The group, if it is one.
    pub fn group(&self) -> Option<&Name> {
        self.group.as_ref()
    }

    /// The names in order.
    pub fn as_slice(&self) -> &[Name] {
        &self.names
    }

    /// What decides where the names live: the group, else the name.
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

/// Tells one waiter from another in a fair queue; drawn at random for each wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter(pub u64);

/// What must be durable before a grant is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// The primary has it.
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
    /// Whose grant it will be.
    pub owner: Owner,
    /// How long it lives without renewal.
    pub ttl: Duration,
    /// How long it may live with all renewals, from now; `None` is for ever.
    pub cap: Option<Duration>,
    /// The token must be above this one.
    pub floor: Option<FencingToken>,
    /// Who waits, so that a fair queue knows its place.
    pub waiter: Option<Waiter>,
    /// Whether to keep a place in the queue when refused.
    pub fair: bool,
    /// Text kept with the grant for people who inspect it, at most 256 bytes.
    pub meta: Arc<str>,
    /// What must be durable before the answer.
    pub durability: Durability,
}

/// Answers [`Acquire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireReply {
    /// All names are the owner's, or the one that was picked.
    Granted {
        /// The name that was picked, if any one was asked for.
        picked: Option<Name>,
        /// The token.
        token: FencingToken,
        /// Life left on the backend's clock: the ttl, less where a cap ends it, more where the owner had more.
        granted: Duration,
        /// Whether the owner held the names before it asked.
        again: bool,
        /// Replicas that have it, when that was asked for.
        replicas: Option<u32>,
    },
    /// Nothing is the owner's. The refusal tells whether the waiter has a place in the queue.
    Refused(Refusal),
    /// The queue has no place left.
    QueueFull,
    /// The owner's cap is used up.
    CapReached,
    /// A new epoch was needed and could not be had. Nothing was granted.
    Epoch(FenceError),
    /// No answer of the backend itself.
    Failed(BackendError),
}

/// Asks for more life for one grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renew {
    /// All names of the grant.
    pub names: Names,
    /// Whose it is.
    pub owner: Owner,
    /// Its token.
    pub token: FencingToken,
    /// The least life asked for. It shortens nothing, so zero changes nothing and answers what is left.
    pub ttl: Duration,
}

/// Answers [`Renew`]. The worst of the grant's names decides: `Taken` is worse than `Gone`, `Gone`
/// worse than `Capped`. Of several other owners the one with the highest token is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenewReply {
    /// Every name lives for so long on the backend's clock.
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
    /// No answer of the backend itself.
    Failed(BackendError),
}

/// Asks to end one grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// All names of the grant.
    pub names: Names,
    /// Whose it is.
    pub owner: Owner,
    /// Its token; `None` when the acquire was never answered: then the owner alone decides.
    pub token: Option<FencingToken>,
    /// A place in the queue to give up.
    pub waiter: Option<Waiter>,
}

/// Answers [`Release`]. What was the owner's is free afterwards; the worst name decides the
/// word: `Taken` is worse than `Gone`. Of several other owners the one with the highest token is told.
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
    /// No answer of the backend itself.
    Failed(BackendError),
}

/// Who holds a name, as the backend knows it.
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
    /// Life left with all renewals; `None` is for ever.
    pub cap: Option<Duration>,
    /// What the holder wrote into its request.
    pub meta: String,
}
