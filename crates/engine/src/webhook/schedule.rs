//! The retry schedule of deliveries, as Standard Webhooks recommends: three days in all.

use soldonce_clock::Entropy;
use soldonce_core::{Span, Timestamp};

use super::Then;
use crate::limits::WEBHOOK_PAUSES_MS;

/// Decides what follows a failed attempt after `attempts` others, not before `quiet_until`. Up to a
/// tenth is added at random, so that an endpoint that is up again is not sent everything at once.
pub(crate) fn next_attempt(
    attempts: u32,
    now: Timestamp,
    quiet_until: Option<Timestamp>,
    entropy: &dyn Entropy,
) -> Then {
    let at = usize::try_from(attempts).unwrap_or(usize::MAX);
    let Some(pause_ms) = WEBHOOK_PAUSES_MS.get(at).copied() else {
        return Then::GiveUp;
    };
    let mut random = [0; 2];
    entropy.fill(&mut random);
    let share = u64::from(u16::from_be_bytes(random));
    let jitter_ms = pause_ms * share / (10 * 65_536);
    let at = now.plus(Span::from_ms(pause_ms + jitter_ms));
    Then::Again(quiet_until.unwrap_or(at).max(at))
}

#[cfg(test)]
mod tests {
    use soldonce_clock::SeededEntropy;

    use super::*;

    #[test]
    fn it_ends_after_three_days() {
        let entropy = SeededEntropy::new(1);
        let start = Timestamp::from_ms(1_000_000);
        let (mut now, mut attempts) = (start, 0);
        while let Then::Again(next) = next_attempt(attempts, now, None, &entropy) {
            assert!(next > now);
            (now, attempts) = (next, attempts + 1);
        }
        assert_eq!(attempts, 9, "and the first one at once");
        let day_ms = 24 * 60 * 60 * 1_000;
        let took_ms = now.ms() - start.ms();
        assert!((3 * day_ms..4 * day_ms).contains(&took_ms), "{took_ms}");
        assert_eq!(next_attempt(u32::MAX, now, None, &entropy), Then::GiveUp);
    }

    #[test]
    fn it_is_never_sooner_than_was_asked_for() {
        let entropy = SeededEntropy::new(1);
        let now = Timestamp::from_ms(1_000_000);
        let later = now.plus(Span::from_ms(60_000));
        assert_eq!(
            next_attempt(0, now, Some(later), &entropy),
            Then::Again(later)
        );
        // A shorter wait does not use the attempts up sooner.
        let Then::Again(next) = next_attempt(3, now, Some(later), &entropy) else {
            panic!("given up");
        };
        assert!(next.ms() >= now.ms() + 2 * 3_600_000);
    }
}
