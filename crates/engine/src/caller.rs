//! The caller of a command and its rights. Decides nothing about units.

use std::sync::Arc;

use soldonce_core::{
    Actor, Authority, CallerId, Holder, HolderName, Invalid, Origin, Rejection, TtlMax,
};

use crate::idempotency::CallKey;
use crate::keys::{KeyId, Scope};
use crate::ledger::RequestKey;
use crate::secret::Session;

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// An API key.
    Key {
        id: KeyId,
        scopes: Arc<[Scope]>,
    },
    Shopper(Session),
}

impl Caller {
    /// Returns the caller's id.
    pub fn id(&self) -> CallerId {
        match self {
            Self::Key { id, .. } => *id,
            Self::Shopper(session) => session.caller,
        }
    }

    /// Tells whether it is staff: its key has the scope `admin`.
    pub fn is_admin(&self) -> bool {
        self.has(Scope::Admin)
    }

    /// Tells whether its key has a scope; `admin` has every one.
    pub fn has(&self, scope: Scope) -> bool {
        match self {
            Self::Key { scopes, .. } => scopes.contains(&scope) || scopes.contains(&Scope::Admin),
            Self::Shopper(_) => false,
        }
    }

    /// Returns the holder of its holds: itself for a shopper, the named holder for a key.
    ///
    /// # Errors
    /// `Invalid` when a shopper names one or a key does not.
    pub fn holder(&self, named: Option<HolderName>) -> Result<Holder, Rejection> {
        let invalid = |reason: &str| Err(Invalid::new("holder", reason.to_owned()).into());
        let name = match (self, named) {
            (Self::Shopper(session), None) => session.holder.clone(),
            (Self::Key { .. }, Some(named)) => named,
            (Self::Shopper(_), Some(_)) => {
                return invalid("a session holds for itself; leave `holder` out");
            }
            (Self::Key { .. }, None) => {
                return invalid("name the holder: your own id for the shopper");
            }
        };
        let caller = self.id();
        Ok(Holder { caller, name })
    }

    /// Returns the longest time to live it may ask for.
    pub fn ttl_max(&self) -> TtlMax {
        match self {
            Self::Shopper(_) => TtlMax::HoldTtl,
            Self::Key { .. } => TtlMax::HoldMax,
        }
    }

    /// Returns the right by which it acts without a hold's secret.
    pub fn authority(&self) -> Authority {
        if self.is_admin() {
            Authority::Staff
        } else {
            Authority::Caller(self.id())
        }
    }

    /// Returns the right by which it acts with the secret of a hold or a booking.
    pub(crate) fn authority_by_secret(&self) -> Authority {
        if self.is_admin() {
            Authority::Staff
        } else {
            Authority::Secret
        }
    }
}

/// A request on its way through the engine.
#[derive(Clone, Debug)]
pub struct Call {
    pub caller: Caller,
    /// The request's id, for the audit.
    pub request: Arc<str>,
    /// Its idempotency key, if it has one.
    pub key: Option<CallKey>,
    /// The hold secret that was sent with it.
    pub secret: Option<HoldSecret>,
    /// The secret of a booking, or of the hold it came from: a request may name another hold, too.
    pub booking_secret: Option<HoldSecret>,
}

impl Call {
    /// Returns a call without a key and without secrets.
    pub fn new(caller: Caller, request: &str) -> Self {
        Self {
            caller,
            request: request.into(),
            key: None,
            secret: None,
            booking_secret: None,
        }
    }

    /// Returns who asked and in which request, for the audit.
    pub fn origin(&self) -> Origin {
        Origin {
            actor: Actor::Caller(self.caller.id()),
            request: Arc::clone(&self.request),
        }
    }

    /// Returns the name of its idempotency record, if it has a key.
    pub fn record(&self) -> Option<RequestKey> {
        self.key.as_ref().map(|key| key.name(self.caller.id()))
    }

    /// Returns the secret that the caller sent to prove that a booking is its own.
    pub(crate) fn booking_proof(&self) -> Option<&HoldSecret> {
        self.booking_secret.as_ref().or(self.secret.as_ref())
    }
}

/// The secret of a hold or of a booking as it was sent. Not shown in `Debug`.
#[derive(Clone)]
pub struct HoldSecret(pub Arc<str>);
