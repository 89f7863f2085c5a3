//! The money of the account: every effect that really took place, recorded apart from the intents
//! it changed, so that one can be checked against the other (I16).

use std::collections::BTreeMap;

/// What happened to money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoneyEffect {
    /// It was authorised on the card.
    Authorised,
    /// It was captured.
    Captured,
    /// What was authorised and not captured was released, by a cancel or a smaller capture.
    Voided,
    /// What was authorised and not captured was released because it lapsed.
    Lapsed,
    /// It was refunded.
    Refunded,
    /// A refund failed, and the money is on the account again.
    RefundFailed,
}

/// One effect on money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyEntry {
    /// When, milliseconds since the epoch on the account's clock.
    pub at_ms: i64,
    /// The id of the intent.
    pub intent: String,
    /// For which booking.
    pub booking: Option<String>,
    /// What happened.
    pub effect: MoneyEffect,
    /// Minor units.
    pub amount: i64,
}

/// The money of one intent: totals, and how often each effect took place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoneyLine {
    /// For which booking.
    pub booking: Option<String>,
    /// Authorised in all, minor units.
    pub authorised: i64,
    /// Captured in all.
    pub captured: i64,
    /// Authorised and released, by a cancel, a smaller capture or lapse.
    pub released: i64,
    /// Refunded in all, without refunds that failed.
    pub refunded: i64,
    /// How often it was authorised.
    pub authorisations: u32,
    /// How often it was captured.
    pub captures: u32,
    /// How often it was released by a cancel or a smaller capture.
    pub voids: u32,
    /// How often some was refunded.
    pub refunds: u32,
    /// How many of those refunds failed.
    pub failed_refunds: u32,
}

impl MoneyLine {
    /// Returns the amount that is authorised and neither captured nor released now.
    pub fn reserved(&self) -> i64 {
        self.authorised - self.captured - self.released
    }

    /// Returns the amount that is captured and not refunded now.
    pub fn kept(&self) -> i64 {
        self.captured - self.refunded
    }

    fn add(&mut self, entry: &MoneyEntry) {
        self.booking.clone_from(&entry.booking);
        let amount = entry.amount;
        match entry.effect {
            MoneyEffect::Authorised => {
                self.authorised += amount;
                self.authorisations += 1;
            }
            MoneyEffect::Captured => {
                self.captured += amount;
                self.captures += 1;
            }
            MoneyEffect::Voided => {
                self.released += amount;
                self.voids += 1;
            }
            MoneyEffect::Lapsed => self.released += amount,
            MoneyEffect::Refunded => {
                self.refunded += amount;
                self.refunds += 1;
            }
            MoneyEffect::RefundFailed => {
                self.refunded -= amount;
                self.failed_refunds += 1;
            }
        }
    }

    /// Finds a total that is impossible with any order of calls.
    fn violation(&self) -> Option<&'static str> {
        [
            (self.reserved() < 0, "more is taken or let go than reserved"),
            (self.refunded < 0, "more refunds failed than were made"),
            (self.kept() < 0, "more is given back than taken"),
            (self.captures > 1, "taken twice"),
        ]
        .into_iter()
        .find_map(|(is_wrong, what)| is_wrong.then_some(what))
    }
}

/// Adds the effects up for each intent, by its id.
pub fn lines(entries: &[MoneyEntry]) -> BTreeMap<String, MoneyLine> {
    let mut lines = BTreeMap::<String, MoneyLine>::new();
    for entry in entries {
        lines.entry(entry.intent.clone()).or_default().add(entry);
    }
    lines
}

/// Lists what is wrong with these effects by themselves, after each of them: at most one capture
/// per intent and per booking, never more refunded than captured or captured than authorised.
pub fn violations(entries: &[MoneyEntry]) -> Vec<String> {
    let mut lines = BTreeMap::<&str, MoneyLine>::new();
    let mut captures = BTreeMap::<&str, &str>::new();
    let mut found = Vec::new();
    for entry in entries {
        let line = lines.entry(&entry.intent).or_default();
        line.add(entry);
        if entry.amount <= 0 {
            found.push(format!("{}: {:?} of nothing", entry.intent, entry.effect));
        }
        if let Some(what) = line.violation() {
            found.push(format!("{}: {what}: {line:?}", entry.intent));
        }
        let Some(booking) = &entry.booking else {
            continue;
        };
        if entry.effect == MoneyEffect::Captured
            && let Some(other) = captures.insert(booking, &entry.intent)
        {
            let intent = &entry.intent;
            found.push(format!("{booking}: taken by {other} and by {intent}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::MoneyEffect::{Authorised, Captured, Lapsed, RefundFailed, Refunded, Voided};
    use super::*;

    fn entry(intent: &str, effect: MoneyEffect, amount: i64) -> MoneyEntry {
        MoneyEntry {
            at_ms: 0,
            intent: intent.to_owned(),
            booking: Some("b".to_owned()),
            effect,
            amount,
        }
    }

    fn count(effects: &[(MoneyEffect, i64)]) -> usize {
        let of = |(effect, amount): &(MoneyEffect, i64)| entry("a", *effect, *amount);
        violations(&effects.iter().map(of).collect::<Vec<_>>()).len()
    }

    #[test]
    fn honest_money_has_no_violation() {
        assert_eq!(count(&[(Authorised, 9), (Captured, 9), (Refunded, 4)]), 0);
        assert_eq!(count(&[(Authorised, 9), (Captured, 5), (Voided, 4)]), 0);
        assert_eq!(count(&[(Authorised, 9), (Lapsed, 9), (Authorised, 9)]), 0);
        let again = [Refunded, RefundFailed, Refunded].map(|effect| (effect, 9));
        assert_eq!(
            count(&[&[(Authorised, 9), (Captured, 9)], &again[..]].concat()),
            0
        );
    }

    #[test]
    fn planted_money_is_caught() {
        assert_eq!(count(&[(Captured, 9)]), 1, "nothing was reserved");
        assert_eq!(count(&[(Authorised, 9), (Captured, 10)]), 1);
        assert_eq!(count(&[(Authorised, 9), (Voided, 9), (Captured, 9)]), 1);
        let twice = [(Authorised, 9), (Captured, 4), (Captured, 5)];
        assert_eq!(count(&twice), 2, "of the intent, and of its booking");
        let refunded_twice = [(Authorised, 9), (Captured, 9), (Refunded, 9), (Refunded, 9)];
        assert_eq!(count(&refunded_twice), 1);
        assert_eq!(count(&[(Authorised, 0)]), 1);
    }

    #[test]
    fn a_booking_that_paid_twice_is_caught() {
        let of = |intent| [entry(intent, Authorised, 9), entry(intent, Captured, 9)];
        assert_eq!(violations(&[of("a"), of("c")].concat()).len(), 1);
    }

    #[test]
    fn lines_add_up() {
        let entries = [
            entry("a", Authorised, 9),
            entry("a", Captured, 6),
            entry("a", Voided, 3),
            entry("a", Refunded, 2),
            entry("c", Authorised, 5),
        ];
        let lines = lines(&entries);
        assert_eq!((lines["a"].kept(), lines["a"].reserved()), (4, 0));
        assert_eq!((lines["c"].kept(), lines["c"].reserved()), (0, 5));
        assert_eq!((lines["a"].captures, lines["a"].refunds), (1, 1));
    }
}
