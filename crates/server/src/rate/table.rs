//! The callers that are counted, in memory of a fixed size.
//!
//! A caller has a place in one set of eight, by a keyed hash: a caller cannot choose whom it
//! meets. When its set is full, the caller who has used least gives way; those are first the callers
//! with a whole quota, of whom nothing is forgotten. With more callers at once than the table takes,
//! some are forgotten who have used little: the table never refuses a caller who has not used the
//! own quota up, and those who used most stay longest.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use super::{Counting, RateKind};
use crate::limits::{RATE_CALLERS_MAX, RATE_SET_CALLERS, RATE_SHARDS};

const SHARD_SETS: usize = RATE_CALLERS_MAX / RATE_SHARDS / RATE_SET_CALLERS;
const SETS: u64 = (SHARD_SETS * RATE_SHARDS) as u64;

/// One number for each of the last callers.
#[derive(Debug)]
pub(super) struct Table {
    shards: Box<[Mutex<Box<[Place]>>]>,
    hasher: RandomState,
}

/// A caller and the time until which its requests are paid for; 0 is none.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    id: u128,
    paid_us: u64,
    kind: RateKind,
}

impl Default for Table {
    fn default() -> Self {
        let shard = || Mutex::new(vec![Place::default(); SHARD_SETS * RATE_SET_CALLERS].into());
        Self {
            shards: (0..RATE_SHARDS).map(|_| shard()).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl Table {
    /// Changes the number of a caller; 0 is that of one who is not known.
    pub(super) fn update<R>(&self, who: Counting, change: impl FnOnce(u64) -> (R, u64)) -> R {
        let (shard, set) = place_of(self.hasher.hash_one(who));
        let Some(shard) = self.shards.get(shard) else {
            return change(0).0;
        };
        let mut places = crate::lock(shard);
        let first = set * RATE_SET_CALLERS;
        let Some(set) = places.get_mut(first..first + RATE_SET_CALLERS) else {
            return change(0).0;
        };
        let is_own = |place: &Place| place.id == who.id && place.kind == who.kind;
        let at = set.iter().position(is_own);
        let at = at.or_else(|| least_used(set)).unwrap_or(0);
        let Some(place) = set.get_mut(at) else {
            return change(0).0;
        };
        let is_known = is_own(place);
        let known = if is_known { place.paid_us } else { 0 };
        let (result, paid_us) = change(known);
        // A look at a caller who is not known takes the place of none.
        if is_known || paid_us > 0 {
            *place = Place {
                id: who.id,
                paid_us,
                kind: who.kind,
            };
        }
        result
    }
}

/// Finds the caller that has used least: an empty place, then those whose quota is whole.
fn least_used(set: &[Place]) -> Option<usize> {
    let places = set.iter().enumerate();
    places
        .min_by_key(|(_, place)| place.paid_us)
        .map(|(at, _)| at)
}

/// Returns the shard, and the set in it.
fn place_of(hash: u64) -> (usize, usize) {
    let at = usize::try_from(hash % SETS).unwrap_or(0);
    (at / SHARD_SETS, at % SHARD_SETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(id: u128) -> Counting {
        Counting {
            kind: RateKind::Reads,
            id,
        }
    }

    /// Returns what the table knows of a caller, which it keeps as it is.
    fn known(table: &Table, who: Counting) -> u64 {
        table.update(who, |paid_us| (paid_us, paid_us))
    }

    #[test]
    fn callers_are_kept_apart_by_id_and_kind() {
        let table = Table::default();
        let callers = |kind| (0..1_000).map(move |id| Counting { kind, id });
        let callers: Vec<_> = RateKind::ALL.into_iter().flat_map(callers).collect();
        for (who, paid_us) in callers.iter().zip(1..) {
            let before = table.update(*who, |known| (known, paid_us));
            assert_eq!(before, 0, "{who:?}");
        }
        for (who, paid_us) in callers.iter().zip(1..) {
            assert_eq!(known(&table, *who), paid_us);
        }
    }

    #[test]
    fn a_look_at_a_stranger_drives_out_no_caller() {
        let table = Table::default();
        // More than there are places: each of them is taken.
        for id in 0..2_000_000 {
            table.update(who(id), |_| ((), 1));
        }
        let kept = (0..2_000_000)
            .filter(|id| known(&table, who(*id)) > 0)
            .count();
        for id in 2_000_000..2_100_000 {
            assert_eq!(known(&table, who(id)), 0);
        }
        let still = (0..2_000_000)
            .filter(|id| known(&table, who(*id)) > 0)
            .count();
        assert_eq!(still, kept);
    }

    #[test]
    fn a_million_callers_take_no_more_memory_than_one() {
        let table = Table::default();
        let places = |table: &Table| -> usize {
            let shards = table.shards.iter();
            shards.map(|shard| shard.lock().unwrap().len()).sum()
        };
        let before = places(&table);
        for id in 0..1_000_000 {
            table.update(who(id), |paid_us| ((), paid_us + 5));
        }
        assert_eq!(
            (before, places(&table)),
            (RATE_CALLERS_MAX, RATE_CALLERS_MAX)
        );
        assert!(size_of::<Place>() * RATE_CALLERS_MAX <= 4 * 1_024 * 1_024);
    }

    #[test]
    fn a_flood_of_new_callers_forgets_those_who_used_least() {
        let table = Table::default();
        let heavy = who(u128::MAX);
        table.update(heavy, |_| ((), 1_000));
        for id in 0..1_000_000 {
            // No caller is charged with what another has used.
            table.update(who(id), |paid_us| {
                assert!(paid_us <= 5, "{id}: {paid_us}");
                ((), 5)
            });
        }
        assert_eq!(known(&table, heavy), 1_000, "who used most is remembered");
    }

    #[test]
    fn in_a_full_set_the_least_used_gives_way() {
        let used = [9, 4, 7, 4, 0, 6, 8, 5];
        let set = used.map(|paid_us| Place {
            paid_us,
            ..Place::default()
        });
        assert_eq!(least_used(&set), Some(4), "a free place");
        assert_eq!(least_used(&set[..4]), Some(1));
    }
}
