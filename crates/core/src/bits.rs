//! A set of unit numbers as bits, with a summary bit for every 64 of them. A search skips 4,096
//! absent numbers a step, so a hall of a million sold seats is searched in 256 steps.

use std::ops::Range;

use crate::number::index;

const BITS: u32 = u64::BITS;

/// A set of numbers below a fixed length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    /// Bit n is set when word n is not zero.
    summary: Vec<u64>,
}

impl Bits {
    /// Creates the empty set of numbers `0..len`.
    pub(crate) fn none(len: u32) -> Self {
        let words = len.div_ceil(BITS);
        Self {
            words: vec![0; index(words)],
            summary: vec![0; index(words.div_ceil(BITS))],
        }
    }

    /// Creates the full set of numbers `0..len`.
    pub(crate) fn all(len: u32) -> Self {
        let words = len.div_ceil(BITS);
        Self {
            words: ones(len),
            summary: ones(words),
        }
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        let (word, mask) = place(number);
        self.words.get(word).is_some_and(|word| word & mask != 0)
    }

    /// Puts a number in; returns whether it was absent.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let (at, mask) = place(number);
        let Some(word) = self.words.get_mut(at) else {
            return false;
        };
        let absent = *word & mask == 0;
        *word |= mask;
        let (at, mask) = place(number / BITS);
        if let Some(summary) = self.summary.get_mut(at) {
            *summary |= mask;
        }
        absent
    }

    /// Takes a number out; returns whether it was present.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let (at, mask) = place(number);
        let Some(word) = self.words.get_mut(at) else {
            return false;
        };
        let present = *word & mask != 0;
        *word &= !mask;
        if *word == 0 {
            let (at, mask) = place(number / BITS);
            if let Some(summary) = self.summary.get_mut(at) {
                *summary &= !mask;
            }
        }
        present
    }

    /// Returns the first number of `range` that is in the set.
    pub(crate) fn next_in(&self, range: Range<u32>) -> Option<u32> {
        if range.is_empty() {
            return None;
        }
        let found = match next_of_word(&self.words, range.start) {
            Some(number) => Some(number),
            None => self.next_beyond(range.start / BITS + 1, range.end),
        };
        found.filter(|number| *number < range.end)
    }

    /// Returns the first number in a word from `word` on, if that word begins before `end`.
    fn next_beyond(&self, word: u32, end: u32) -> Option<u32> {
        let words = end.div_ceil(BITS);
        let mut from = word;
        while from < words {
            if let Some(word) = next_of_word(&self.summary, from) {
                return next_of_word(&self.words, word.saturating_mul(BITS));
            }
            from = (from / BITS + 1).saturating_mul(BITS);
        }
        None
    }

    /// Returns the number of `range` that has `before` numbers of the set before it.
    pub(crate) fn nth_in(&self, range: Range<u32>, before: u32) -> Option<u32> {
        let (mut from, mut left) = (range.start, before);
        while from < range.end {
            let word = self.words.get(index(from / BITS)).copied().unwrap_or(0);
            let word = word & (u64::MAX << (from % BITS));
            let next = (from / BITS + 1).saturating_mul(BITS);
            if word.count_ones() > left {
                let rest = (0..left).fold(word, |word, _| word & (word - 1));
                let found = next - BITS + rest.trailing_zeros();
                return Some(found).filter(|number| *number < range.end);
            }
            left -= word.count_ones();
            from = next;
        }
        None
    }

    /// Returns the first number of `range` that is not in the set; its end when all are.
    pub(crate) fn next_out(&self, range: Range<u32>) -> u32 {
        let mut from = range.start;
        while from < range.end {
            let word = self.words.get(index(from / BITS)).copied().unwrap_or(0);
            let absent = !word & (u64::MAX << (from % BITS));
            if absent != 0 {
                let found = (from / BITS).saturating_mul(BITS) + absent.trailing_zeros();
                return found.min(range.end);
            }
            from = (from / BITS + 1).saturating_mul(BITS);
        }
        range.end
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        (self.words.capacity() + self.summary.capacity()) * size_of::<u64>()
    }
}

/// Returns the first set bit from `number` on, in the word of `number`.
fn next_of_word(words: &[u64], number: u32) -> Option<u32> {
    let rest = words.get(index(number / BITS))? & (u64::MAX << (number % BITS));
    (rest != 0).then(|| (number / BITS).saturating_mul(BITS) + rest.trailing_zeros())
}

fn place(number: u32) -> (usize, u64) {
    (index(number / BITS), 1 << (number % BITS))
}

fn ones(len: u32) -> Vec<u64> {
    let mut words = vec![u64::MAX; index(len.div_ceil(BITS))];
    let beyond = len % BITS;
    if let Some(last) = words.last_mut().filter(|_| beyond != 0) {
        *last = u64::MAX >> (BITS - beyond);
    }
    words
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Numbers around every border of a word and of a summary word.
    const CHOSEN: [u32; 11] = [0, 1, 62, 63, 64, 127, 4_095, 4_096, 4_097, 9_000, 9_999];

    #[test]
    fn finds_what_is_in_and_what_is_out() {
        let mut some = Bits::none(10_000);
        let mut others = Bits::all(10_000);
        for number in CHOSEN {
            assert!(some.insert(number) && !some.insert(number));
            assert!(others.remove(number) && !others.remove(number));
        }
        for from in 0..10_000 {
            let next = CHOSEN.into_iter().find(|number| *number >= from);
            assert_eq!(some.next_in(from..10_000), next, "from {from}");
            assert_eq!(others.next_out(from..10_000), next.unwrap_or(10_000));
            assert_eq!(some.has(from), next == Some(from));
            assert_eq!(others.has(from), next != Some(from));
        }
        assert_eq!(some.next_in(2..62), None, "the end does not count");
        for (from, before) in [(0, 0), (0, 3), (1, 0), (2, 1), (63, 4), (4_097, 2), (64, 9)] {
            let mut chosen = CHOSEN.into_iter().filter(|number| *number >= from);
            let found = chosen.nth(usize::try_from(before).unwrap());
            assert_eq!(some.nth_in(from..10_000, before), found, "{from} {before}");
        }
        assert_eq!(some.nth_in(0..127, 5), None, "the end does not count");
        assert_eq!(others.next_out(2..62), 62);
    }

    /// Empties and fills whole words, and searches each time from every border.
    #[test]
    fn emptied_words_are_passed_by() {
        let mut bits = Bits::all(10_000);
        let mut known: BTreeSet<u32> = (0..10_000).collect();
        for (turn, range) in [0..64, 64..4_096, 4_090..9_000, 0..5_000]
            .into_iter()
            .enumerate()
        {
            let (come, go): (Vec<u32>, Vec<u32>) =
                range.partition(|number| turn == 3 && number % 63 == 0);
            for number in go {
                assert_eq!(known.remove(&number), bits.remove(number), "{number}");
            }
            for number in come {
                assert_eq!(known.insert(number), bits.insert(number), "{number}");
            }
            for from in (0..10_000).step_by(61) {
                let next = known.range(from..).next().copied();
                assert_eq!(
                    bits.next_in(from..10_000),
                    next,
                    "from {from} in turn {turn}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_beyond_the_length() {
        for len in [0, 1, 63, 64, 65, 4_096, 4_097] {
            let all = Bits::all(len);
            assert_eq!(all.next_out(0..len), len);
            assert_eq!(all.next_in(len..u32::MAX), None);
            assert!(!all.has(len));
            assert_eq!(Bits::none(len).next_in(0..u32::MAX), None);
        }
        assert!(!Bits::all(64).insert(64) && !Bits::all(64).remove(64));
    }
}
