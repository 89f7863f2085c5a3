//! A lease in serialised form, handed to another process, which resumes it.

use std::time::Duration;

use super::Grant;
use crate::backend::Names;
use crate::limits::{NAMES_MAX, TTL_MAX};
use crate::{FencingToken, Name, Owner, timing};

/// Resumes a lease. A secret: a process that has it can hold and release the lease.
///
/// ```
/// # use soldonce_lease::{LeaseTicket, Leases};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let leases = Leases::memory().connect().await?;
/// let ticket = leases.lease("handover").acquire().await?.detach();
/// let text = serde_json::to_string(&ticket)?;
/// let ticket: LeaseTicket = serde_json::from_str(&text)?;
/// let lease = leases.resume(ticket).await?.expect("its grant lives");
/// assert!(lease.state().is_live());
/// # Ok(())
/// # }
/// ```
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct LeaseTicket {
    pub(crate) names: Names,
    pub(crate) owner: Owner,
    pub(crate) token: FencingToken,
    pub(crate) ttl: Duration,
    pub(crate) safety: Duration,
    pub(crate) manual: bool,
    pub(crate) endless: bool,
}

impl std::fmt::Debug for LeaseTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseTicket")
            .field("names", &self.names)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

impl LeaseTicket {
    pub(crate) fn of(grant: &Grant) -> Self {
        Self {
            names: grant.terms.names.clone(),
            owner: grant.terms.owner,
            token: grant.terms.token,
            ttl: grant.ttl(),
            safety: grant.terms.safety,
            manual: grant.terms.manual,
            endless: grant.terms.endless,
        }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    group: Option<String>,
    names: Vec<String>,
    owner: String,
    token: FencingToken,
    ttl_ms: u64,
    safety_ms: u64,
    manual: bool,
    // One of a build before has none.
    #[serde(default)]
    endless: bool,
}

/// Why a text is not a ticket. Never repeats the text, for it may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a lease ticket: {0}")]
struct InvalidTicket(&'static str);

impl From<LeaseTicket> for Written {
    fn from(ticket: LeaseTicket) -> Self {
        let text = |name: &Name| name.as_str().to_owned();
        let owner = u128::from_be_bytes(ticket.owner.expose());
        Self {
            group: ticket.names.group().map(text),
            names: ticket.names.as_slice().iter().map(text).collect(),
            owner: format!("{owner:032x}"),
            token: ticket.token,
            ttl_ms: timing::millis(ticket.ttl),
            safety_ms: timing::millis(ticket.safety),
            manual: ticket.manual,
            endless: ticket.endless,
        }
    }
}

impl TryFrom<Written> for LeaseTicket {
    type Error = InvalidTicket;

    fn try_from(written: Written) -> Result<Self, InvalidTicket> {
        let name = |text: &String| Name::new(text).map_err(|_| InvalidTicket("a name is none"));
        let names = written.names.iter().map(name);
        let names = names.collect::<Result<Vec<_>, _>>()?;
        if names.is_empty() || names.len() > NAMES_MAX {
            return Err(InvalidTicket("too few or too many names"));
        }
        let names = match (written.group.as_ref(), names.as_slice()) {
            (Some(group), _) => Names::of_group(name(group)?, names),
            (None, [one]) => Names::one(one.clone()),
            (None, _) => return Err(InvalidTicket("several names without a group")),
        };
        let ttl = Duration::from_millis(written.ttl_ms);
        if ttl.is_zero() || ttl > TTL_MAX {
            return Err(InvalidTicket("the ttl is out of bounds"));
        }
        let safety = Duration::from_millis(written.safety_ms);
        if safety >= ttl {
            return Err(InvalidTicket("the safety is out of bounds"));
        }
        Ok(Self {
            names,
            owner: owner(&written.owner).ok_or(InvalidTicket("the owner is none"))?,
            token: written.token,
            ttl,
            safety,
            manual: written.manual,
            endless: written.endless,
        })
    }
}

fn owner(text: &str) -> Option<Owner> {
    let plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = u128::from_str_radix(text, 16).ok().filter(|_| plain)?;
    Some(Owner::from_bits(bits.to_be_bytes()))
}
