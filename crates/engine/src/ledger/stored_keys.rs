//! An index in memory from idempotency keys to the numbers of their records. The newest keys are in
//! a map. Of older ones memory has 32 bits of the key and the number, so a key that is found may be
//! another one: the caller compares it with the record. Decides nothing and reads no record.

use std::collections::{BTreeMap, VecDeque};

use super::ScopedKey;
use super::rows::replies::Record;
use crate::limits::{IDEMPOTENCY_KEYS_MAX, IDEMPOTENCY_KEYS_NEWEST};

/// Bits of a prefix that name its bucket in a run: 16 keys each.
const BUCKET_BITS: u32 = 12;

/// The numbers of all records of a store, by key. Numbers rise from record to record.
#[derive(Debug, Default)]
pub(crate) struct StoredKeys {
    newest: BTreeMap<ScopedKey, u64>,
    /// The number of the first record in `newest`.
    newest_from: u64,
    /// Older records, the oldest run first.
    runs: VecDeque<Run>,
    /// Records below this number are forgotten.
    from: u64,
    next: u64,
}

/// Records whose numbers follow each other, sorted by key.
#[derive(Debug)]
struct Run {
    first: u64,
    last: u64,
    prefixes: Vec<u32>,
    /// The record number minus `first`, of the key whose prefix has the same index.
    offsets: Vec<u16>,
    /// The index in `prefixes` at which each bucket begins, and at which the last one ends.
    starts: Vec<u32>,
}

impl StoredKeys {
    /// Adds a record. Its number is above all others.
    pub(crate) fn add(&mut self, key: ScopedKey, number: u64) {
        let is_full = self.newest.len() >= IDEMPOTENCY_KEYS_NEWEST;
        if is_full || number.saturating_sub(self.newest_from) > u64::from(u16::MAX) {
            self.end_run();
        }
        if self.newest.is_empty() {
            self.newest_from = number;
            if self.runs.is_empty() {
                self.from = number;
            }
        }
        self.newest.insert(key, number);
        self.next = number.saturating_add(1);
    }

    /// Adds records that were stored from [`StoredKeys::next`] on.
    pub(crate) fn add_all(&mut self, records: &[Record]) {
        for (key, _) in records {
            self.add(key.scoped, self.next);
        }
    }

    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the numbers of records that may have this key, the newest first.
    pub(crate) fn find(&self, key: ScopedKey) -> impl Iterator<Item = u64> {
        let prefix = prefix(key);
        let newest = self.newest.get(&key).copied().into_iter();
        let older = self.runs.iter().rev();
        let found = newest.chain(older.flat_map(move |run| run.find(prefix)));
        found.filter(|number| *number >= self.from)
    }

    /// Forgets the records up to this number.
    pub(crate) fn forget(&mut self, last: u64) {
        self.from = last.saturating_add(1);
        while self.runs.front().is_some_and(|run| run.last <= last) {
            self.runs.pop_front();
        }
        if self.next <= self.from {
            self.newest.clear();
        }
    }

    /// Returns the last number to delete, if there are more records than [`IDEMPOTENCY_KEYS_MAX`].
    pub(crate) fn surplus(&self) -> Option<u64> {
        let last = self
            .next
            .checked_sub(IDEMPOTENCY_KEYS_MAX)?
            .checked_sub(1)?;
        (last >= self.from).then_some(last)
    }

    /// Returns the number of the oldest record that is not forgotten.
    pub(crate) const fn from(&self) -> u64 {
        self.from
    }

    fn end_run(&mut self) {
        if let Some(last) = self.next.checked_sub(1)
            && !self.newest.is_empty()
        {
            let keys = std::mem::take(&mut self.newest);
            self.runs.push_back(Run::new(keys, self.newest_from, last));
        }
    }
}

impl Run {
    fn new(keys: BTreeMap<ScopedKey, u64>, first: u64, last: u64) -> Self {
        let prefixes: Vec<u32> = keys.keys().map(|key| prefix(*key)).collect();
        let offset = |number: u64| u16::try_from(number.saturating_sub(first)).unwrap_or(u16::MAX);
        let offsets = keys.into_values().map(offset).collect();
        let start = |of: u32| {
            let start = prefixes.partition_point(|prefix| bucket(*prefix) < of);
            u32::try_from(start).unwrap_or(u32::MAX)
        };
        Self {
            first,
            last,
            offsets,
            starts: (0..=1 << BUCKET_BITS).map(start).collect(),
            prefixes,
        }
    }

    fn find(&self, prefix: u32) -> impl Iterator<Item = u64> {
        let start = |bucket: u32| {
            let place = usize::try_from(bucket).ok()?;
            usize::try_from(*self.starts.get(place)?).ok()
        };
        let bucket = bucket(prefix);
        let within = start(bucket).unwrap_or(0)..start(bucket.saturating_add(1)).unwrap_or(0);
        let prefixes = self.prefixes.get(within.clone()).unwrap_or_default();
        let offsets = self.offsets.get(within).unwrap_or_default();
        let pairs = prefixes.iter().zip(offsets);
        let same = pairs.filter(move |(known, _)| **known == prefix);
        same.map(|(_, offset)| self.first.saturating_add(u64::from(*offset)))
    }
}

/// Returns the first 32 bits of a key; they sort as the keys do.
fn prefix(key: ScopedKey) -> u32 {
    u32::from_be_bytes(key.0.first_chunk().copied().unwrap_or_default())
}

const fn bucket(prefix: u32) -> u32 {
    prefix >> (u32::BITS - BUCKET_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes distinct keys that are spread as hashes are.
    fn key(n: u64) -> ScopedKey {
        let spread = u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        ScopedKey(spread.to_be_bytes())
    }

    fn with(count: u64) -> StoredKeys {
        let mut keys = StoredKeys::default();
        for n in 0..count {
            keys.add(key(n), n);
        }
        keys
    }

    impl StoredKeys {
        fn heap_bytes(&self) -> usize {
            let run = |run: &Run| {
                4 * (run.prefixes.capacity() + run.starts.capacity()) + 2 * run.offsets.capacity()
            };
            // A full map has 24 bytes a key, and as much again in half-empty nodes.
            self.runs.iter().map(run).sum::<usize>() + 48 * self.newest.len()
        }
    }

    #[test]
    fn every_key_is_found_and_hardly_another() {
        let count = 300_000;
        let keys = with(count);
        for n in 0..count {
            assert!(keys.find(key(n)).any(|found| found == n), "{n}");
        }
        let wrong: usize = (count..2 * count).map(|n| keys.find(key(n)).count()).sum();
        assert!(wrong < 100, "{wrong} of {count}");
    }

    #[test]
    fn a_million_keys_take_ten_megabytes() {
        let bytes = with(1_000_000).heap_bytes();
        assert!(bytes < 10_000_000, "{bytes}");
    }

    #[test]
    fn what_is_forgotten_is_not_found_and_takes_no_room() {
        let mut keys = with(300_000);
        keys.forget(99_999);
        assert_eq!(keys.find(key(99_999)).count(), 0);
        assert!(keys.find(key(100_000)).any(|found| found == 100_000));
        keys.forget(299_999);
        assert_eq!((keys.runs.len(), keys.newest.len()), (0, 0));
        // The same key may come again.
        keys.add(key(5), 300_000);
        assert_eq!(keys.find(key(5)).collect::<Vec<_>>(), [300_000]);
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut keys = StoredKeys::default();
        keys.add(key(0), 7);
        assert_eq!(keys.surplus(), None);
        keys.add(key(1), 7 + IDEMPOTENCY_KEYS_MAX);
        assert_eq!(keys.surplus(), Some(7));
        keys.forget(7);
        assert_eq!(keys.surplus(), None);
    }
}
