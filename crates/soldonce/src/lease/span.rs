//! Spans of time as options give them.

use std::time::Duration;

/// Parses a time: `30s`, `1500ms`, `5m`, `24h`, or `0`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let invalid = || format!("`{text}` is no time: write 1500ms, 30s, 5m or 24h");
    let number: u64 = number.parse().map_err(|_| invalid())?;
    let millis = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "" if number == 0 => Some(0),
        _ => None,
    };
    let millis = millis.and_then(|millis| number.checked_mul(millis));
    Ok(Duration::from_millis(millis.ok_or_else(invalid)?))
}
