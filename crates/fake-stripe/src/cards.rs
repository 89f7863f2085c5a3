//! The cards of the test mode, by the names of their payment methods.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a card says no. Kept in a file by the most exact word there is for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decline {
    /// Stripe's word for the error.
    pub(super) code: &'static str,
    /// The bank's reason, if it is the bank.
    pub(super) reason: Option<&'static str>,
    /// For people.
    pub(super) message: &'static str,
}

/// The bank refuses.
pub(super) const DECLINED: Decline = Decline {
    code: "card_declined",
    reason: Some("generic_decline"),
    message: "Your card was declined.",
};

/// There is not enough on the account.
pub(super) const NO_FUNDS: Decline = Decline {
    code: "card_declined",
    reason: Some("insufficient_funds"),
    message: "Your card has insufficient funds.",
};

/// The buyer failed on the bank's page.
pub(super) const NOT_AUTHENTICATED: Decline = Decline {
    code: "payment_intent_authentication_failure",
    reason: None,
    message: "The provided payment method has failed authentication.",
};

impl Decline {
    const fn word(self) -> &'static str {
        match self.reason {
            Some(reason) => reason,
            None => self.code,
        }
    }
}

impl Serialize for Decline {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Decline {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        let mut all = [DECLINED, NO_FUNDS, NOT_AUTHENTICATED].into_iter();
        let found = all.find(|decline| decline.word() == word);
        found.ok_or_else(|| D::Error::custom(format_args!("no card says {word}")))
    }
}

/// What a card does when it is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Card {
    /// Says yes.
    Approved,
    /// Says no.
    Declined(Decline),
    /// Says no to the first charge of an intent, then yes.
    DeclinedAtFirst,
    /// Wants its owner to prove himself on the bank's page.
    Challenged,
    /// Says neither, until the test does.
    Undecided,
    /// As [`Card::Undecided`], and the payment cannot be called back meanwhile.
    Late,
    /// As [`Card::Late`], and the money is taken with the yes, as by a transfer.
    Transfer,
}

impl Card {
    /// The card of a payment method; nothing when there is none of that name.
    pub(super) fn of(payment_method: &str) -> Option<Self> {
        match payment_method {
            "pm_card_visa" | "pm_card_mastercard" => Some(Self::Approved),
            "pm_card_chargeDeclined" => Some(Self::Declined(DECLINED)),
            "pm_card_chargeDeclinedInsufficientFunds" => Some(Self::Declined(NO_FUNDS)),
            "pm_card_threeDSecure2Required" => Some(Self::Challenged),
            "pm_card_declinedAtFirst" => Some(Self::DeclinedAtFirst),
            "pm_card_undecided" => Some(Self::Undecided),
            "pm_card_late" => Some(Self::Late),
            "pm_card_transfer" => Some(Self::Transfer),
            _ => None,
        }
    }
}

/// What a card says at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charged {
    /// Yes, or nothing yet.
    Taken,
    /// No.
    Declined,
}

/// What a card or its bank says in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Approved,
    /// No.
    Declined,
}
