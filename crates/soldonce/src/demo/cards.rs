//! The test cards of the demo: what the page offers, and what the provider does with each.

use soldonce_server::ShownCard;

/// When the bank of a test card answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It answers at once.
    None,
    /// It answers after half a minute (`DEMO_BANK_SILENCE_MS`).
    ForAWhile,
    /// It answers once the hold has ended.
    UntilHoldEnds,
}

/// A card, as the page names it and as the provider does.
pub(super) struct TestCard {
    pub(super) shown: ShownCard,
    pub(super) payment_method: &'static str,
    pub(super) silence: Silence,
}

/// A card that the bank approves.
pub(super) const GOOD: TestCard = card(
    ("good", "Card that works", "The bank says yes at once."),
    "pm_card_visa",
    Silence::None,
);
/// A card that the bank declines.
pub(super) const DECLINED: TestCard = card(
    ("declined", "Card that is declined", "The bank says no."),
    "pm_card_chargeDeclined",
    Silence::None,
);
const CHALLENGED: TestCard = card(
    (
        "challenged",
        "Card with 3-D Secure",
        "The bank asks whether it is you.",
    ),
    "pm_card_threeDSecure2Required",
    Silence::None,
);
const SLOW: TestCard = card(
    (
        "slow",
        "Card whose bank is silent",
        "No answer for half a minute, then yes.",
    ),
    "pm_card_undecided",
    Silence::ForAWhile,
);
const LATE: TestCard = card(
    (
        "late",
        "Card that pays too late",
        "The bank says yes when your time is over: in Last Minute within 40 seconds.",
    ),
    "pm_card_transfer",
    Silence::UntilHoldEnds,
);

/// Every card, in the order in which the page shows them.
pub(super) const ALL: [TestCard; 5] = [GOOD, DECLINED, CHALLENGED, SLOW, LATE];

const fn card(
    words: (&'static str, &'static str, &'static str),
    payment_method: &'static str,
    silence: Silence,
) -> TestCard {
    TestCard {
        shown: ShownCard {
            card: words.0,
            name: words.1,
            about: words.2,
        },
        payment_method,
        silence,
    }
}
