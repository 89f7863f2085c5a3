//! Figures in columns, with ratios of one run.

use std::fmt::Write as _;

/// The middle one; of an even number the lower of the two.
pub(crate) fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or_default()
}

/// `part / whole` in thousandths.
pub(crate) fn permille(part: u64, whole: u64) -> u64 {
    part.saturating_mul(1_000) / whole.max(1)
}

/// 1,234 thousandths as `1.234`.
pub(crate) fn thousandths(value: u64) -> String {
    format!("{}.{:03}", value / 1_000, value % 1_000)
}

/// Rows of equal length, the first column to the left, the others to the right.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let lengths = rows.iter().filter_map(|row| row.get(at)).map(String::len);
        lengths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to memory never fails.
            match at {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            }
            .unwrap_or_default();
        }
        text.push('\n');
    }
    text
}
