//! Floors: the highest tokens that targets have reported as seen. The next grant of such a name
//! must have a higher one. `lease.md` 4.5.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use crate::backend::Names;
use crate::limits::FLOORS_MAX;
use crate::locks::lock;
use crate::{FencingToken, Name};

/// A name, with the group that it is in.
type Place = (Option<Name>, Name);

/// Made with the first floor. Most processes never have one, and their acquires take no lock for it.
#[derive(Default)]
pub(crate) struct Floors(OnceLock<Mutex<HashMap<Place, FencingToken>>>);

impl Floors {
    /// Remembers that a target has seen `token` for these names.
    pub(crate) fn raise(&self, names: &Names, token: FencingToken) {
        let mut floors = lock(self.0.get_or_init(Mutex::default));
        if floors.len() >= FLOORS_MAX {
            // A forgotten floor costs one refused write, which brings it back.
            floors.clear();
        }
        for name in names.as_slice() {
            let place = (names.group().cloned(), name.clone());
            let floor = floors.entry(place).or_insert(token);
            *floor = token.max(*floor);
        }
    }

    /// Returns the highest floor of the names, or `asked` if that is higher.
    pub(super) fn above(&self, names: &Names, asked: Option<FencingToken>) -> Option<FencingToken> {
        let Some(floors) = self.0.get() else {
            return asked;
        };
        let floors = lock(floors);
        let place = |name: &Name| (names.group().cloned(), name.clone());
        let known = names.as_slice().iter().map(place);
        let known = known.filter_map(|place| floors.get(&place).copied());
        known.max().max(asked)
    }
}
