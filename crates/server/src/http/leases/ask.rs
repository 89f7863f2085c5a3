//! What is asked about leases: bodies, and the names and owners in them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use soldonce_engine::Caller;
use soldonce_engine::keys::KeyId;
use soldonce_lease::{FencingToken, Name, Owner};
use utoipa::ToSchema;

use crate::http::api_request::ApiRequest;
use crate::http::json::{Str, Whole};
use crate::http::kinds;
use crate::http::problem::Problem;
use crate::leases::{Leased, Terms};
use crate::limits::{LEASE_CAP_MS_DEFAULT, LEASE_CAP_MS_MAX, LEASE_TTL_MS_MIN, LEASE_WAIT_MS_MAX};

const OWNER_BYTES_MAX: usize = 64;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcquireRequest<'a> {
    /// The caller's own word for itself, which it sends again with all that it asks about this lease.
    #[serde(borrow)]
    #[schema(value_type = String)]
    pub(super) owner: Str<'a>,
    /// Several names, all or none; the name in the path is then their group.
    #[schema(value_type = Option<Vec<String>>)]
    pub(super) names: Option<Vec<Str<'a>>>,
    /// How long the lease lives without a renewal.
    #[schema(value_type = u64)]
    pub(super) ttl_ms: Whole<u64>,
    /// How long to wait while others hold it. Left out: not at all.
    #[schema(value_type = Option<u64>)]
    pub(super) wait_ms: Option<Whole<u64>>,
    /// How long it may live with all renewals. Left out: 15 minutes, or the ttl if that is longer.
    #[schema(value_type = Option<u64>)]
    pub(super) cap_ms: Option<Whole<u64>>,
    /// A token that the new one must be above: the highest that the target of the writes has seen.
    #[schema(value_type = Option<String>)]
    pub(super) floor: Option<Str<'a>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RenewRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = String)]
    pub(super) owner: Str<'a>,
    #[schema(value_type = String)]
    pub(super) token: Str<'a>,
    /// Of a lease of several names: all of them.
    #[schema(value_type = Option<Vec<String>>)]
    pub(super) names: Option<Vec<Str<'a>>>,
    /// How long it is to live from now on at least, within its cap. A longer life that it has stays.
    #[schema(value_type = u64)]
    pub(super) ttl_ms: Whole<u64>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseRequest<'a> {
    #[serde(borrow)]
    #[schema(value_type = String)]
    pub(super) owner: Str<'a>,
    #[schema(value_type = String)]
    pub(super) token: Str<'a>,
    /// Of a lease of several names: all of them.
    #[schema(value_type = Option<Vec<String>>)]
    pub(super) names: Option<Vec<Str<'a>>>,
}

/// A lease as its caller has it.
#[derive(Serialize, ToSchema)]
#[schema(as = Lease)]
pub(super) struct LeaseAnswer<'a> {
    pub(super) name: &'a str,
    /// Of a lease of several names; `name` is their group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, required = false)]
    pub(super) names: Vec<&'a str>,
    pub(super) owner: &'a str,
    /// 16 digits; of a later lease of a name it is higher, as a number and as text.
    pub(super) token: String,
    /// How long the caller may rely on it, counted from when it sent this request; of an acquire from `waited_ms`
    /// after that.
    pub(super) remaining_ms: u64,
    /// How long others held it. Of an acquire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) waited_ms: Option<u64>,
    /// How long it may live with all renewals. Of an acquire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) cap_remaining_ms: Option<u64>,
}

/// A lease that a request is about, and the owner at the backend.
pub(super) struct LeaseCall {
    pub(super) key: KeyId,
    pub(super) leased: Leased,
    pub(super) owner: Owner,
}

impl LeaseCall {
    /// Reads the path, `owner` and `names`.
    pub(super) fn of(
        req: &ApiRequest,
        owner: &Str<'_>,
        names: Option<&[Str<'_>]>,
    ) -> Result<Self, Problem> {
        let Some(Caller::Key { id, .. }) = &req.caller else {
            return Err(Problem::new(&kinds::FORBIDDEN));
        };
        let name = name("name", &req.segment(2))?;
        let of_group = names.unwrap_or_default().iter();
        let of_group: Result<Vec<Name>, _> =
            of_group.map(|one| self::name("names", &one.0)).collect();
        let mut of_group = of_group?;
        if names.is_some_and(<[_]>::is_empty) {
            return Err(Problem::invalid("names", "name at least one"));
        }
        of_group.sort_unstable();
        of_group.dedup();
        let leased = Leased { name, of_group };
        let is_legal = (1..=OWNER_BYTES_MAX).contains(&owner.0.len())
            && owner
                .0
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte));
        if !is_legal {
            let rule = format!("1 to {OWNER_BYTES_MAX} of A-Z a-z 0-9 . _ ~ -");
            return Err(Problem::invalid("owner", rule));
        }
        Ok(Self {
            key: *id,
            owner: leased.owner(*id, &owner.0),
            leased,
        })
    }
}

pub(super) fn name(field: &str, text: &str) -> Result<Name, Problem> {
    Name::new(text).map_err(|error| Problem::invalid(field, error))
}

pub(super) fn token(field: &str, text: &Str<'_>) -> Result<FencingToken, Problem> {
    let token = text.0.parse();
    token.map_err(|_| Problem::invalid(field, "16 digits, as an answer had them"))
}

pub(super) fn ttl(req: &ApiRequest, given: Whole<u64>) -> Result<Duration, Problem> {
    let most = req.app.settings.leases.ttl_ms_max;
    within("ttl_ms", given.0, LEASE_TTL_MS_MIN, most)
}

pub(super) fn terms(req: &ApiRequest, body: &AcquireRequest<'_>) -> Result<Terms, Problem> {
    let ttl = ttl(req, body.ttl_ms)?;
    let wait = body.wait_ms.map_or(0, |wait| wait.0);
    let cap_default = LEASE_CAP_MS_DEFAULT.max(body.ttl_ms.0);
    let cap = body.cap_ms.map_or(cap_default, |cap| cap.0);
    let floor = body.floor.as_ref().map(|floor| token("floor", floor));
    Ok(Terms {
        ttl,
        cap: within("cap_ms", cap, body.ttl_ms.0, LEASE_CAP_MS_MAX)?,
        wait: within("wait_ms", wait, 0, LEASE_WAIT_MS_MAX)?,
        floor: floor.transpose()?,
    })
}

fn within(field: &str, ms: u64, least: u64, most: u64) -> Result<Duration, Problem> {
    if (least..=most).contains(&ms) {
        Ok(Duration::from_millis(ms))
    } else {
        let reason = format!("{ms} is outside {least} ..= {most}");
        Err(Problem::invalid(field, reason))
    }
}
