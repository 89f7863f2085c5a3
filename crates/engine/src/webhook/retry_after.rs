//! `Retry-After` of an answer (RFC 9110, 10.2.3): how long an endpoint asks to wait.

use jiff::fmt::{rfc2822, strtime};
use soldonce_core::{Span, Timestamp};

use crate::limits::WEBHOOK_QUIET_MS_MAX;

/// The two obsolete forms of an HTTP date that must still be read; the third is that of mail.
const OBSOLETE: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// The wait that an answer asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryAfter {
    /// A time after the answer.
    Wait(Span),
    /// A date, on the clock of the endpoint.
    At(Timestamp),
}

impl RetryAfter {
    /// Parses the header's value; `None` for one that cannot be read.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // More digits than the type has: as long as can be asked for.
            let seconds: u64 = text.parse().unwrap_or(u64::MAX);
            return Some(Self::Wait(Span::from_ms(seconds.saturating_mul(1_000))));
        }
        date(text).map(|ms| Self::At(Timestamp::from_ms(ms)))
    }

    /// Returns for how long nothing is sent after an answer that came when the wall clock read
    /// `wall`, which is what a date is compared with; never longer than a bound.
    pub(crate) fn wait(self, wall: Timestamp) -> Span {
        let asked = match self {
            Self::Wait(span) => span,
            Self::At(at) => wall.until(at),
        };
        asked.min(Span::from_ms(WEBHOOK_QUIET_MS_MAX))
    }
}

fn date(text: &str) -> Option<i64> {
    if let Ok(at) = rfc2822::DateTimeParser::new().parse_timestamp(text) {
        return Some(at.as_millisecond());
    }
    let read = |form| strtime::parse(form, text).ok()?.to_datetime().ok();
    let at = OBSOLETE.into_iter().find_map(read)?;
    let at = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(at.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(784_111_770_000);

    fn waits_ms(text: &str) -> Option<u64> {
        Some(RetryAfter::parse(text)?.wait(NOW).ms())
    }

    #[test]
    fn seconds_and_every_form_of_a_date_are_read() {
        assert_eq!(waits_ms("0"), Some(0));
        assert_eq!(waits_ms(" 120 "), Some(120_000));
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(waits_ms(date), Some(7_000), "{date}");
        }
    }

    #[test]
    fn what_is_over_is_now_and_what_is_too_long_is_cut() {
        let most = WEBHOOK_QUIET_MS_MAX;
        assert_eq!(waits_ms("Sat, 05 Nov 1994 08:49:37 GMT"), Some(0));
        for long in [
            "3601",
            "18446744073709551615",
            "99999999999999999999999",
            "Thu, 31 Dec 2099 23:59:59 GMT",
        ] {
            assert_eq!(waits_ms(long), Some(most), "{long}");
        }
    }

    #[test]
    fn what_cannot_be_read_asks_for_nothing() {
        for odd in "|-1|1.5|soon|1994-11-06T08:49:37Z|Sun, 06 Nov".split('|') {
            assert_eq!(RetryAfter::parse(odd), None, "{odd}");
        }
    }
}
