//! `grpc-timeout`: up to eight digits and a unit.

use std::time::Duration;

use axum::http::HeaderMap;
use soldonce_clock::BootTime;

/// Returns when a call must be answered; None without a `grpc-timeout` that is legal.
pub(super) fn of(headers: &HeaderMap, now: BootTime) -> Option<BootTime> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    Some(now.plus(span(text)?))
}

fn span(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_legal = digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: u64 = digits.parse().ok().filter(|_| is_legal)?;
    match unit {
        "H" => Some(Duration::from_secs(count.saturating_mul(3_600))),
        "M" => Some(Duration::from_secs(count.saturating_mul(60))),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_digits_and_a_unit() {
        for (text, wanted) in [
            ("2H", Some(Duration::from_hours(2))),
            ("3M", Some(Duration::from_mins(3))),
            ("0S", Some(Duration::ZERO)),
            ("1500m", Some(Duration::from_millis(1_500))),
            ("99999999u", Some(Duration::from_micros(99_999_999))),
            ("7n", Some(Duration::from_nanos(7))),
            ("", None),
            ("S", None),
            ("5", None),
            ("-5S", None),
            ("5s", None),
            ("123456789S", None),
        ] {
            assert_eq!(span(text), wanted, "{text}");
        }
    }
}
