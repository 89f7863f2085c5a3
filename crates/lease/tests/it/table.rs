//! A store of fences for the embedded gate.

use std::collections::BTreeMap;
use std::convert::Infallible;

use soldonce_lease::FencingToken;
use soldonce_lease::gate::{Admit, Embedded, FenceStore};

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

#[test]
fn a_lower_token_is_stale_and_an_equal_one_passes_again() {
    let token = |epoch, counter| FencingToken::from_parts(epoch, counter).unwrap();
    let (gate, mut table) = (Embedded::new(Table), BTreeMap::new());
    let mut admit = |resource: &str, token| gate.admit(&mut table, resource, token);
    assert_eq!(admit("job", token(1, 5)), Ok(Admit::Ok));
    assert_eq!(admit("job", token(1, 5)), Ok(Admit::Ok));
    let current = token(1, 5);
    assert_eq!(admit("job", token(1, 4)), Ok(Admit::Stale { current }));
    assert_eq!(admit("other", token(1, 4)), Ok(Admit::Ok));
    assert_eq!(admit("job", token(2, 1)), Ok(Admit::Ok), "a later epoch");
    let (stale, current) = (token(1, u32::MAX), token(2, 1));
    assert_eq!(admit("job", stale), Ok(Admit::Stale { current }));
}
