//! The gate for embedded stores.

use crate::FencingToken;

/// The part of an embedded store that keeps the highest token seen of each resource.
pub trait FenceStore {
    /// A transaction of the store that excludes other writers: what it reads cannot change
    /// before it ends.
    type Tx<'a>;
    /// The error of the store.
    type Error;

    /// Reads the highest token seen of `resource`; `None` if none was seen.
    ///
    /// # Errors
    /// The error of the store.
    fn highest(
        &self,
        tx: &mut Self::Tx<'_>,
        resource: &str,
    ) -> Result<Option<FencingToken>, Self::Error>;

    /// Stores `token` as the highest one seen of `resource`.
    ///
    /// # Errors
    /// The error of the store.
    fn keep(
        &self,
        tx: &mut Self::Tx<'_>,
        resource: &str,
        token: FencingToken,
    ) -> Result<(), Self::Error>;
}

/// The answer of the gate to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a write that the gate did not admit must be rolled back"]
#[non_exhaustive]
pub enum Admit {
    /// No higher token was seen. Write and commit in the same transaction.
    Ok,
    /// A later holder has written: roll back, and tell the lease with `report_overtaken`.
    Stale {
        /// The token of that holder.
        current: FencingToken,
    },
}

/// A gate over any embedded store with transactions.
///
/// ```
/// use std::{collections::BTreeMap, convert::Infallible};
/// use soldonce_lease::FencingToken;
/// use soldonce_lease::gate::{Admit, Embedded, FenceStore};
///
/// /// A store whose transaction is the only reference to its table.
/// struct Fences;
///
/// impl FenceStore for Fences {
///     type Tx<'a> = BTreeMap<String, FencingToken>;
///     type Error = Infallible;
///
///     fn highest(&self, tx: &mut Self::Tx<'_>, of: &str) -> Result<Option<FencingToken>, Infallible> {
///         Ok(tx.get(of).copied())
///     }
///
///     fn keep(&self, tx: &mut Self::Tx<'_>, of: &str, token: FencingToken) -> Result<(), Infallible> {
///         tx.insert(of.to_owned(), token);
///         Ok(())
///     }
/// }
///
/// let (gate, mut tx) = (Embedded::new(Fences), BTreeMap::new());
/// let old = FencingToken::from_parts(1, 1).expect("a token");
/// let new = FencingToken::from_parts(1, 2).expect("a token");
/// assert_eq!(gate.admit(&mut tx, "report", new), Ok(Admit::Ok));
/// // The holder of the older token was paused: its write is rolled back.
/// assert_eq!(gate.admit(&mut tx, "report", old), Ok(Admit::Stale { current: new }));
/// ```
#[derive(Clone, Debug)]
pub struct Embedded<S> {
    store: S,
}

impl<S: FenceStore> Embedded<S> {
    /// Creates a gate that keeps its tokens in `store`.
    pub fn new(store: S) -> Self {
        Self { store }
    }

    /// Admits a write with `token` to `resource` and stores the token, or refuses it as stale. Call
    /// it inside the transaction of the write, before its commit. The same token passes any number
    /// of times.
    ///
    /// # Errors
    /// The error of the store; the write must then be rolled back.
    pub fn admit(
        &self,
        tx: &mut S::Tx<'_>,
        resource: &str,
        token: FencingToken,
    ) -> Result<Admit, S::Error> {
        match self.store.highest(tx, resource)? {
            Some(current) if current > token => Ok(Admit::Stale { current }),
            Some(current) if current == token => Ok(Admit::Ok),
            Some(_) | None => {
                self.store.keep(tx, resource, token)?;
                Ok(Admit::Ok)
            }
        }
    }
}
