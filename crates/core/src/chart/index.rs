//! Seat ids by number and numbers by seat id: one text, one array of ends, one open-addressing
//! table. About 20 bytes a seat, and a look-up touches the table once and the text once, so a hall
//! of a million seats answers as fast as one of a hundred.

use crate::UnitNo;

#[derive(Clone, Debug, Default)]
pub(super) struct SeatIndex {
    texts: String,
    ends: Vec<u32>,
    /// Seat number + 1, or 0 for an empty slot. The length is a power of two, at most two thirds
    /// full.
    slots: Vec<u32>,
}

impl SeatIndex {
    /// The index of `ids`; the second of two equal ids is given back.
    pub(super) fn build<'a>(ids: impl Iterator<Item = &'a str>) -> Result<Self, UnitNo> {
        let mut index = Self::default();
        for id in ids {
            index.texts.push_str(id);
            index
                .ends
                .push(u32::try_from(index.texts.len()).unwrap_or(u32::MAX));
        }
        index.texts.shrink_to_fit();
        index.ends.shrink_to_fit();
        let slots = (index.ends.len() * 3 / 2 + 1).next_power_of_two();
        index.slots = vec![0; slots];
        for number in (1..).take(index.ends.len()) {
            index.insert(number)?;
        }
        Ok(index)
    }

    fn insert(&mut self, number: u32) -> Result<(), UnitNo> {
        let unit = UnitNo(number - 1);
        let id = self.text(unit).unwrap_or_default();
        let slot = self.probe(id);
        match self.slots.get_mut(slot) {
            Some(empty @ 0) => {
                *empty = number;
                Ok(())
            }
            Some(_) | None => Err(unit),
        }
    }

    /// The slot of `id`, or the empty one where it belongs.
    fn probe(&self, id: &str) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash(id) & mask;
        loop {
            match self.slots.get(at).copied() {
                None | Some(0) => return at,
                Some(number) if self.text(UnitNo(number - 1)) == Some(id) => return at,
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<UnitNo> {
        let number = self.slots.get(self.probe(id)).copied().unwrap_or(0);
        number.checked_sub(1).map(UnitNo)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.texts.capacity() + (self.ends.capacity() + self.slots.capacity()) * size_of::<u32>()
    }

    pub(super) fn text(&self, unit: UnitNo) -> Option<&str> {
        let at = unit.index();
        let end = usize::try_from(*self.ends.get(at)?).ok()?;
        let start = match at.checked_sub(1) {
            Some(before) => usize::try_from(*self.ends.get(before)?).ok()?,
            None => 0,
        };
        self.texts.get(start..end)
    }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo), folded. Charts come from the event's owner, not from
/// strangers, so a hash without a key is enough.
fn hash(id: &str) -> usize {
    let wide = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    usize::try_from((wide ^ (wide >> 32)) & 0xffff_ffff).unwrap_or(0)
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
