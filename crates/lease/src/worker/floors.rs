//! Floors: the highest tokens that targets have reported as seen. The next grant of such a name
//! must have a higher one. `lease.md` 4.5.

use std::collections::HashMap;

use crate::backend::Names;
use crate::limits::FLOORS_MAX;
use crate::{FencingToken, Name};

#[derive(Default)]
pub(super) struct Floors(HashMap<(Option<Name>, Name), FencingToken>);

impl Floors {
    /// Remembers that a target has seen `token` for these names.
    pub(super) fn raise(&mut self, names: &Names, token: FencingToken) {
        if self.0.len() >= FLOORS_MAX {
            // A forgotten floor costs one refused write, which brings it back.
            self.0.clear();
        }
        for name in names.as_slice() {
            let place = (names.group().cloned(), name.clone());
            let floor = self.0.entry(place).or_insert(token);
            *floor = token.max(*floor);
        }
    }

    /// Returns the highest floor of the names, or `asked` if that is higher.
    pub(super) fn above(&self, names: &Names, asked: Option<FencingToken>) -> Option<FencingToken> {
        let place = |name: &Name| (names.group().cloned(), name.clone());
        let known = names.as_slice().iter().map(place);
        let known = known.filter_map(|place| self.0.get(&place).copied());
        known.max().max(asked)
    }
}
