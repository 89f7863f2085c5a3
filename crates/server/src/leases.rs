//! Where the leases of the service are, and all that is asked of `soldonce-lease`. The rules of a lease are the
//! library's (lease.md 2.5); what callers send and get is in `http/leases`.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use soldonce_core::CallerId;
use soldonce_lease::{
    AcquireError, BackendError, Clock, FencingToken, InvalidRequest, Leases, LostReason, Name,
    Owner, OwnerInfo, Refusal, ReleaseOutcome, RemoteGrant, RenewError, Request,
};
use tokio::sync::OnceCell;

use crate::limits::{LEASE_TTL_MS_MAX, LEASES_PER_KEY_MAX};

/// Connects to where leases are: at the first request for one, and again until that succeeds.
pub trait LeasePlace: Debug + Send + Sync {
    /// Connects. `clock` is the server's. Fails with the reason as text.
    fn connect(&self, clock: Arc<dyn Clock>) -> BoxFuture<'static, Result<Leases, String>>;
}

/// Settings of the service.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// Where leases are; default in memory, without anchored tokens.
    pub place: Arc<dyn LeasePlace>,
    /// Longest ttl, milliseconds; default [`LEASE_TTL_MS_MAX`].
    pub ttl_ms_max: u64,
    /// Most live leases of one API key, as this server knows; default [`LEASES_PER_KEY_MAX`]. None is no limit.
    pub live_max: Option<u32>,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self {
            place: Arc::new(InMemory),
            ttl_ms_max: LEASE_TTL_MS_MAX,
            live_max: Some(LEASES_PER_KEY_MAX),
        }
    }
}

#[derive(Debug)]
struct InMemory;

impl LeasePlace for InMemory {
    fn connect(&self, clock: Arc<dyn Clock>) -> BoxFuture<'static, Result<Leases, String>> {
        let connecting = async move { Leases::memory().clock(clock).connect().await };
        connecting
            .map(|leases| leases.map_err(|error| error.to_string()))
            .boxed()
    }
}

/// Why a call about a lease was not done.
#[derive(Debug)]
pub(crate) enum LeaseError {
    /// Others hold it, or some of its names.
    Held(Refusal),
    /// The lease is over.
    Lost(&'static str),
    /// It may have been done.
    Unknown,
    /// It was not done.
    Unavailable(String),
    /// Too many wait for the names.
    Busy,
    /// No such lease can be.
    Invalid(InvalidRequest),
}

/// The names of one lease: one, or several of a group.
#[derive(Clone, Debug)]
pub(crate) struct Leased {
    pub(crate) name: Name,
    /// Several names, whose group is `name`: sorted, each once. Empty where `name` is alone.
    pub(crate) of_group: Vec<Name>,
}

impl Leased {
    /// Computes the owner at the backend for the caller's word. An owner is for one set of names.
    pub(crate) fn owner(&self, caller: CallerId, word: &str) -> Owner {
        let mut hash = Sha256::new();
        hash.update(b"soldonce lease 1\0");
        hash.update(caller.bytes());
        // No word and no name has a space.
        for part in [word, self.name.as_str()]
            .into_iter()
            .chain(self.of_group.iter().map(Name::as_str))
        {
            hash.update(part.as_bytes());
            hash.update(b" ");
        }
        let hash: [u8; 32] = hash.finalize().into();
        Owner::from_bits(hash.first_chunk().copied().unwrap_or_default())
    }
}

/// The terms of an acquire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) ttl: Duration,
    pub(crate) cap: Duration,
    pub(crate) wait: Duration,
    pub(crate) floor: Option<FencingToken>,
}

/// The service's connection to its leases.
pub(crate) struct LeaseBackend {
    place: Arc<dyn LeasePlace>,
    clock: Arc<dyn Clock>,
    leases: OnceCell<Leases>,
}

impl LeaseBackend {
    pub(crate) fn new(place: Arc<dyn LeasePlace>, clock: Arc<dyn Clock>) -> Self {
        Self {
            place,
            clock,
            leases: OnceCell::new(),
        }
    }

    async fn leases(&self) -> Result<&Leases, String> {
        let connect = || self.place.connect(Arc::clone(&self.clock));
        self.leases.get_or_try_init(connect).await
    }

    async fn request(&self, leased: &Leased) -> Result<Request, LeaseError> {
        let client = self.leases().await.map_err(LeaseError::Unavailable)?;
        Ok(if leased.of_group.is_empty() {
            client.lease(&leased.name)
        } else {
            client.group(&leased.name, &leased.of_group)
        })
    }

    /// Grants `leased` to `owner`; the same to the same owner. Returns how long it may live with all renewals,
    /// too; None where that could not be found out.
    ///
    /// # Cancel safety
    /// Dropped, it may have been granted, for its ttl.
    pub(crate) async fn acquire(
        &self,
        leased: &Leased,
        owner: Owner,
        terms: Terms,
    ) -> Result<(RemoteGrant, Option<Duration>), LeaseError> {
        let mut request = self.request(leased).await?.ttl(terms.ttl);
        request = request.max_lifetime(terms.cap);
        if let Some(floor) = terms.floor {
            request = request.floor(floor);
        }
        let granted = request.grant_to(owner, terms.wait).await;
        let granted = granted.map_err(not_granted)?.map_err(LeaseError::Held)?;
        let cap_remaining = if granted.is_again() {
            let (name, group) = match leased.of_group.first() {
                Some(name) => (name, Some(&leased.name)),
                None => (&leased.name, None),
            };
            let holder = self.inspect(name, group).await;
            holder.ok().flatten().and_then(|holder| holder.cap)
        } else {
            Some(terms.cap)
        };
        Ok((granted, cap_remaining))
    }

    /// Renews what `owner` was granted with `token`. Returns how long it may rely on it.
    pub(crate) async fn renew(
        &self,
        leased: &Leased,
        owner: Owner,
        token: FencingToken,
        ttl: Duration,
    ) -> Result<Duration, LeaseError> {
        let granted = granted(self.request(leased).await?.ttl(ttl), owner, token)?;
        granted.renew().await.map_err(|error| match error {
            RenewError::Lost(reason) => LeaseError::Lost(word(reason)),
            RenewError::Unavailable(error) => failed(&error),
            RenewError::Unknown | _ => LeaseError::Unknown,
        })
    }

    /// Ends what `owner` was granted with `token`. Returns whether it was not over before.
    pub(crate) async fn release(
        &self,
        leased: &Leased,
        owner: Owner,
        token: FencingToken,
    ) -> Result<bool, LeaseError> {
        let granted = granted(self.request(leased).await?, owner, token)?;
        let outcome = granted.release().await.map_err(|_| LeaseError::Unknown)?;
        Ok(outcome == ReleaseOutcome::Released)
    }

    /// Finds the holder of `name`, of a group or alone; None if it is free.
    pub(crate) async fn inspect(
        &self,
        name: &Name,
        group: Option<&Name>,
    ) -> Result<Option<OwnerInfo>, String> {
        let leases = self.leases().await?;
        let holder = match group {
            Some(group) => leases.group(group, [name]).inspect().await,
            None => leases.lease(name).inspect().await,
        };
        // Asking changes nothing, so nothing is in doubt.
        holder.map_err(|error| error.to_string())
    }
}

fn granted(request: Request, owner: Owner, token: FencingToken) -> Result<RemoteGrant, LeaseError> {
    request
        .granted_to(owner, token)
        .map_err(LeaseError::Invalid)
}

fn not_granted(error: AcquireError) -> LeaseError {
    match error {
        AcquireError::Unavailable(error) => failed(&error),
        AcquireError::Fence(error) => LeaseError::Unavailable(error.to_string()),
        AcquireError::QueueFull => LeaseError::Busy,
        AcquireError::Invalid(invalid) => LeaseError::Invalid(invalid),
        AcquireError::Unknown { .. } | AcquireError::Closed | _ => LeaseError::Unknown,
    }
}

fn failed(error: &BackendError) -> LeaseError {
    if let BackendError::Unknown(_) = error {
        return LeaseError::Unknown;
    }
    LeaseError::Unavailable(error.to_string())
}

fn word(reason: LostReason) -> &'static str {
    match reason {
        LostReason::Taken { .. } | LostReason::Overtaken { .. } => "taken",
        LostReason::CapReached => "capped",
        LostReason::Gone | LostReason::Deadline | _ => "gone",
    }
}
