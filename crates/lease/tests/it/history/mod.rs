//! Records what clients of leases saw, each by its own times, and judges it afterwards: no two live
//! holders at once, tokens that rise in the order of the grants, a gate that lets nothing lower in
//! after something higher. `lease.md` 11; the search is the one of Wing and Gong with the memo of
//! Lowe (Testing for linearizability, 2017), one name at a time.

mod gate;
mod lock;
mod record;
mod recorder;
mod search;

mod tests;

pub(crate) use lock::Refusals;
pub(crate) use record::{Grant, History, Verdict, Write};
pub(crate) use recorder::{AcquireCall, Held, Recorder};

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use soldonce_lease::FencingToken;

/// What a history must not show.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Violation {
    /// Two clients both held a name at the same instant, and no fault explains it.
    TwoHolders {
        /// What they held.
        name: String,
        /// The one who held it before.
        first: Box<Grant>,
        /// The one who got it too early.
        second: Box<Grant>,
    },
    /// Two grants of a name have the same number.
    TokenRepeated {
        /// What was granted.
        name: String,
        /// The number.
        token: FencingToken,
    },
    /// A grant that began after another had ended got the lower token.
    TokenFell {
        /// What was granted.
        name: String,
        /// The earlier token.
        from: FencingToken,
        /// The later one.
        to: FencingToken,
    },
    /// A gate admitted a write after it had admitted one with a higher token.
    StaleWrite {
        /// What was written.
        resource: String,
        /// The token admitted before.
        higher: FencingToken,
        /// The write.
        write: Box<Write>,
    },
    /// No order of the operations explains all replies.
    NoOrder {
        /// The name or the resource.
        of: String,
        /// No explanation reaches beyond the operation that was called at this time.
        stuck: Duration,
    },
    /// Too many operations overlap to be judged.
    TooWide {
        /// The name or the resource.
        of: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoHolders {
                name,
                first,
                second,
            } => write!(f, "two holders of {name}: {first}, and {second}"),
            Self::TokenRepeated { name, token } => {
                write!(f, "two grants of {name} with token {token}")
            }
            Self::TokenFell { name, from, to } => {
                write!(f, "the token of {name} fell from {from} to {to}")
            }
            Self::StaleWrite {
                resource,
                higher,
                write,
            } => write!(f, "{resource} admitted {write} after {higher}"),
            Self::NoOrder { of, stuck } => {
                write!(f, "no order explains the replies of {of} from {stuck:?} on")
            }
            Self::TooWide { of } => write!(f, "too many operations on {of} overlap"),
        }
    }
}

impl History {
    /// Everything that is wrong with it; `refusals` tells when a refusal is right.
    pub(crate) fn check(&self, refusals: Refusals) -> Vec<Violation> {
        let names: BTreeSet<&str> = self.grants.iter().map(|grant| &*grant.name).collect();
        let resources: BTreeSet<&str> = self.writes.iter().map(|write| &*write.resource).collect();
        let locks = names
            .into_iter()
            .flat_map(|name| lock::check(self, name, refusals));
        let gates = resources
            .into_iter()
            .flat_map(|resource| gate::check(self, resource));
        locks.chain(gates).collect()
    }
}
