//! Seat ids by number and numbers by seat id: one text, the lengths of its parts, and one
//! open-addressing table. About 30 bytes a seat. A look-up touches the table once and the text
//! once, so a hall of a million seats answers nearly as fast as one of a hundred.

use std::ops::Range;

use crate::UnitNo;
use crate::limits::{ID_BYTES_MAX, UNITS_PER_CHART_MAX};
use crate::number::{count, index};

#[derive(Clone, Debug, Default)]
pub(super) struct SeatIndex {
    texts: String,
    lengths: Vec<u8>,
    /// Where every 16th text starts.
    starts: Vec<u32>,
    /// The length is a power of two, at most two thirds full.
    slots: Vec<Slot>,
}

/// Ids that share one known start.
const BLOCK: usize = 16;

/// The position of an id's text, its seat, and some bits of its hash, which avoid reading the text
/// of nearly every other id. Zero is an empty slot: no text has no length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot(u64);

const LENGTH_BITS: u32 = 7;
const SEAT_BITS: u32 = 22;
const START_BITS: u32 = 29;
const TAG_BITS: u32 = 6;

const _: () = assert!(LENGTH_BITS + SEAT_BITS + START_BITS + TAG_BITS == u64::BITS);
const _: () = assert!(ID_BYTES_MAX < 1 << LENGTH_BITS);
const _: () = assert!(UNITS_PER_CHART_MAX <= 1 << SEAT_BITS);
const _: () = assert!(64 * UNITS_PER_CHART_MAX < 1 << START_BITS && ID_BYTES_MAX == 64);

impl Slot {
    fn new(seat: UnitNo, text: &Range<usize>, hash: Hash) -> Self {
        let number = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        let (start, length) = (number(text.start), number(text.len()));
        let tag = u64::from(hash.tag);
        let seat = u64::from(seat.0);
        Self((((tag << START_BITS | start) << SEAT_BITS | seat) << LENGTH_BITS) | length)
    }

    fn part(self, after: u32, bits: u32) -> u32 {
        u32::try_from(self.0 >> after & ((1 << bits) - 1)).unwrap_or(u32::MAX)
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn seat(self) -> UnitNo {
        UnitNo(self.part(LENGTH_BITS, SEAT_BITS))
    }

    fn text(self) -> Range<usize> {
        let start = index(self.part(LENGTH_BITS + SEAT_BITS, START_BITS));
        start..start + index(self.part(0, LENGTH_BITS))
    }

    fn is_like(self, hash: Hash) -> bool {
        self.part(u64::BITS - TAG_BITS, TAG_BITS) == hash.tag
    }
}

impl SeatIndex {
    /// Builds the index of `ids`; fails with the second of two equal ids.
    pub(super) fn build<'a>(ids: impl Iterator<Item = &'a str>) -> Result<Self, UnitNo> {
        let mut index = Self::default();
        for id in ids {
            if index.lengths.len().is_multiple_of(BLOCK) {
                index.starts.push(count(index.texts.len()));
            }
            index.texts.push_str(id);
            let length = u8::try_from(id.len()).unwrap_or(u8::MAX);
            index.lengths.push(length);
        }
        index.texts.shrink_to_fit();
        index.lengths.shrink_to_fit();
        index.starts.shrink_to_fit();
        let slots = (index.lengths.len() * 3 / 2 + 1).next_power_of_two();
        index.slots = vec![Slot::default(); slots];
        for seat in (0..).map(UnitNo).take(index.lengths.len()) {
            index.insert(seat)?;
        }
        Ok(index)
    }

    fn insert(&mut self, seat: UnitNo) -> Result<(), UnitNo> {
        let text = self.range(seat).unwrap_or_default();
        let id = self.texts.get(text.clone()).unwrap_or_default();
        let hash = Hash::of(id);
        let at = self.probe(id, hash);
        match self.slots.get_mut(at) {
            Some(empty) if empty.is_empty() => {
                *empty = Slot::new(seat, &text, hash);
                Ok(())
            }
            Some(_) | None => Err(seat),
        }
    }

    /// Finds the slot of `id`, or the empty one where it belongs.
    fn probe(&self, id: &str, hash: Hash) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        let is_here = |slot: &Slot| slot.is_like(hash) && self.texts.get(slot.text()) == Some(id);
        let mut at = hash.place & mask;
        while let Some(slot) = self.slots.get(at)
            && !slot.is_empty()
            && !is_here(slot)
        {
            at = (at + 1) & mask;
        }
        at
    }

    pub(super) fn find(&self, id: &str) -> Option<UnitNo> {
        let slot = self.slots.get(self.probe(id, Hash::of(id)))?;
        (!slot.is_empty()).then(|| slot.seat())
    }

    pub(super) fn text(&self, seat: UnitNo) -> Option<&str> {
        self.texts.get(self.range(seat)?)
    }

    fn range(&self, seat: UnitNo) -> Option<Range<usize>> {
        let (block, at) = (seat.index() / BLOCK, seat.index() % BLOCK);
        let before = self.lengths.get(block * BLOCK..block * BLOCK + at)?;
        let before: usize = before.iter().map(|length| usize::from(*length)).sum();
        let start = usize::try_from(*self.starts.get(block)?).ok()? + before;
        Some(start..start + usize::from(*self.lengths.get(seat.index())?))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.texts.capacity()
            + self.lengths.capacity()
            + self.starts.capacity() * size_of::<u32>()
            + self.slots.capacity() * size_of::<Slot>()
    }
}

/// The slot at which the search for an id begins, and bits that tell it from others there.
#[derive(Clone, Copy)]
struct Hash {
    place: usize,
    tag: u32,
}

impl Hash {
    /// Hashes an id by FNV-1a, 64 bits (Fowler, Noll, Vo), folded. Charts come from the event's
    /// owner, not from strangers, so a hash without a key is enough.
    fn of(id: &str) -> Self {
        let wide = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let folded = (wide ^ (wide >> 32)) & 0xffff_ffff;
        Self {
            place: usize::try_from(folded).unwrap_or(0),
            tag: u32::try_from(wide >> (u64::BITS - TAG_BITS)).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_id_and_no_other() {
        let ids: Vec<String> = (0..5_000)
            .map(|n| format!("R{}-{}", n / 70, n % 70))
            .collect();
        let index = SeatIndex::build(ids.iter().map(String::as_str)).unwrap();
        for (number, id) in (0..).zip(&ids) {
            assert_eq!(index.find(id), Some(UnitNo(number)));
            assert_eq!(index.text(UnitNo(number)), Some(id.as_str()));
        }
        assert_eq!(index.find("R0-70"), None);
        assert_eq!(index.text(UnitNo(5_000)), None);
    }

    #[test]
    fn tells_the_second_of_two_equal_ids() {
        let twice = SeatIndex::build(["a", "b", "a"].into_iter());
        assert_eq!(twice.err(), Some(UnitNo(2)));
    }

    #[test]
    fn an_empty_index_finds_nothing() {
        assert_eq!(SeatIndex::default().find("a"), None);
        assert_eq!(
            SeatIndex::build(std::iter::empty()).unwrap().find("a"),
            None
        );
    }
}
