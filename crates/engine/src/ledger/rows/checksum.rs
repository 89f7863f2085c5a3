//! The checksum of a row in SQLite. SQLite returns flipped bits without an error (assurance.md,
//! I25), so every row has a checksum of its own values, which each read verifies.

use rusqlite::types::ValueRef;

use super::column::Column;

/// The checksum of the values of one row, in the order of its columns.
///
/// FNV-1a over words of eight bytes. Each step is a bijection of the sum so far and of the word, so
/// a change inside one word is always detected. Not a defence against people: the hash chain is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksum(u64);

const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;
/// The word for NULL; no length has this value.
const NULL: u64 = u64::MAX;

impl Checksum {
    /// Starts the checksum of a row of `table`.
    pub(crate) fn of(table: &str) -> Self {
        Self(START).text(table)
    }

    #[must_use]
    fn word(self, word: u64) -> Self {
        let mixed = (self.0 ^ word).wrapping_mul(PRIME);
        Self(mixed ^ (mixed >> 29))
    }

    #[must_use]
    pub(crate) fn int(self, value: i64) -> Self {
        self.word(value.cast_unsigned())
    }

    #[must_use]
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut sum = self.word(u64::try_from(bytes.len()).unwrap_or(NULL));
        for word in words {
            sum = sum.word(u64::from_le_bytes(*word));
        }
        if rest.is_empty() {
            return sum;
        }
        let last = rest.iter().rev();
        let last = last.fold(0, |word, byte| (word << 8) | u64::from(*byte));
        sum.word(last)
    }

    #[must_use]
    pub(crate) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Adds one more column. A number that may be NULL is summed differently from one that may not.
    #[must_use]
    pub(crate) fn column(self, column: &Column<'_>) -> Self {
        match column.value() {
            _ if column.is_absent() => self,
            ValueRef::Integer(number) if column.is_opt_number() => self.word(1).int(number),
            ValueRef::Integer(number) => self.int(number),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => self.bytes(bytes),
            ValueRef::Null | ValueRef::Real(_) => self.word(NULL),
        }
    }

    /// Returns the checksum as it is stored.
    pub(crate) fn to_i64(self) -> i64 {
        self.0.cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_changes_the_sum() {
        let row: Vec<u8> = (0..61).collect();
        let sum = Checksum::of("units").bytes(&row).int(7).to_i64();
        for bit in 0..row.len() * 8 {
            let mut damaged = row.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(
                Checksum::of("units").bytes(&damaged).int(7).to_i64(),
                sum,
                "bit {bit}"
            );
        }
        for bit in 0..64 {
            let other = Checksum::of("units")
                .bytes(&row)
                .int(7 ^ (1 << bit))
                .to_i64();
            assert_ne!(other, sum, "bit {bit} of the integer");
        }
    }

    #[test]
    fn values_do_not_run_into_each_other() {
        let sum = |a: &str, b: Option<&str>| {
            let sum = Checksum::of("t").text(a);
            sum.column(&Column::OptText(b)).to_i64()
        };
        let sums = [
            sum("ab", Some("")),
            sum("a", Some("b")),
            sum("ab", None),
            sum("", Some("ab")),
        ];
        for (at, sum) in sums.iter().enumerate() {
            assert!(!sums[at + 1..].contains(sum), "{at}");
        }
    }
}
