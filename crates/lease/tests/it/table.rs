//! A store of fences for the embedded gate.

use std::collections::BTreeMap;
use std::convert::Infallible;

use soldonce_lease::FencingToken;
use soldonce_lease::gate::FenceStore;

/// Its transaction is the only reference to its table.
pub(crate) struct Table;

impl FenceStore for Table {
    type Tx<'a> = BTreeMap<String, FencingToken>;
    type Error = Infallible;

    fn highest(
        &self,
        tx: &mut Self::Tx<'_>,
        resource: &str,
    ) -> Result<Option<FencingToken>, Infallible> {
        Ok(tx.get(resource).copied())
    }

    fn keep(
        &self,
        tx: &mut Self::Tx<'_>,
        resource: &str,
        token: FencingToken,
    ) -> Result<(), Infallible> {
        tx.insert(resource.to_owned(), token);
        Ok(())
    }
}
