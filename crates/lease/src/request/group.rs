//! Names that are leased together. `lease.md` 2.2.

use std::sync::Arc;

use super::Request;
use crate::backend::Names;
use crate::client::{Client, OwnerInfo};
use crate::inbox::Where;
use crate::{
    BackendError, FencingToken, InvalidName, InvalidRequest, Name, ReleaseOutcome, blocking,
};

/// Names that can be leased together in one step.
///
/// ```
/// # use soldonce_lease::{AcquireError, Locks, Name};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let hall = Locks::memory().connect().await?.group("hall");
/// let family = hall.names(["A-1", "A-2", "A-3"]).try_acquire().await?; // all, with one token
/// let Err(AcquireError::Refused(refusal)) = hall.names(["A-3", "A-4"]).try_acquire().await else {
///     panic!("A-3 is held");
/// };
/// assert_eq!(refusal.conflicts[0].name, Name::new("A-3")?);
/// let free = hall.inspect(&Name::new("A-4")?).await?;
/// assert!(free.is_none(), "nothing of a refused group is kept");
/// family.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    client: Arc<Client>,
    group: Result<Name, InvalidRequest>,
}

impl Group {
    pub(crate) fn new(client: Arc<Client>, group: Result<Name, InvalidRequest>) -> Self {
        Self { client, group }
    }

    /// One name of the group.
    pub fn name(&self, name: impl TryInto<Name, Error: Into<InvalidName>>) -> Request {
        self.names([name])
    }

    /// Several names: all are granted together, with one token, or none.
    pub fn names<N>(&self, names: impl IntoIterator<Item = N>) -> Request
    where
        N: TryInto<Name, Error: Into<InvalidName>>,
    {
        let names = names.into_iter().map(name_of).collect::<Result<_, _>>();
        let names = self
            .group
            .clone()
            .and_then(|group| names.map(|names: Vec<Name>| Names::of_group(group, names)));
        Request::new(self.client.clone(), names)
    }

    /// As [`crate::Locks::inspect`], for a name of the group.
    ///
    /// # Errors
    /// As [`crate::Locks::inspect`].
    ///
    /// # Cancel safety
    /// Harmless.
    pub async fn inspect(&self, name: &Name) -> Result<Option<OwnerInfo>, BackendError> {
        self.client.inspect(self.place(name)?).await
    }

    /// As [`crate::Locks::force_release`], for a name of the group.
    ///
    /// # Errors
    /// As [`crate::Locks::force_release`].
    ///
    /// # Cancel safety
    /// As [`crate::Locks::force_release`].
    pub async fn force_release(
        &self,
        name: &Name,
        expect: FencingToken,
        why: &str,
    ) -> Result<ReleaseOutcome, BackendError> {
        self.client
            .force_release(self.place(name)?, expect, why)
            .await
    }

    /// [`Group::inspect`] for code without an executor.
    ///
    /// # Errors
    /// As [`Group::inspect`].
    pub fn inspect_blocking(&self, name: &Name) -> Result<Option<OwnerInfo>, BackendError> {
        blocking::wait(self.inspect(name))
    }

    /// [`Group::force_release`] for code without an executor.
    ///
    /// # Errors
    /// As [`Group::force_release`].
    pub fn force_release_blocking(
        &self,
        name: &Name,
        expect: FencingToken,
        why: &str,
    ) -> Result<ReleaseOutcome, BackendError> {
        blocking::wait(self.force_release(name, expect, why))
    }

    fn place(&self, name: &Name) -> Result<Where, BackendError> {
        let group = self.group.clone();
        let group = group.map_err(|error| BackendError::Config(error.to_string()))?;
        Ok(Where {
            group: Some(group),
            name: name.clone(),
        })
    }
}

pub(crate) fn name_of(
    name: impl TryInto<Name, Error: Into<InvalidName>>,
) -> Result<Name, InvalidRequest> {
    name.try_into()
        .map_err(|error| InvalidRequest::Name(error.into()))
}
