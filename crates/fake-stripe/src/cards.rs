//! The cards of the test mode, by the names of their payment methods (docs.stripe.com/testing), and
//! four of our own that Stripe has no name for: those below `pm_card_refundFail`.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a card declines. Stored in a file as its reason, else as its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decline {
    /// Stripe's code of the error.
    pub(super) code: &'static str,
    /// The bank's reason, `decline_code`, if the bank declined.
    pub(super) reason: Option<&'static str>,
    /// The parameter that is wrong.
    pub(super) param: Option<&'static str>,
    /// The message for people.
    pub(super) message: &'static str,
}

/// The bank declines without a reason.
pub(super) const DECLINED: Decline = declined("generic_decline", "Your card was declined.");

/// The buyer failed on the bank's page.
pub(super) const NOT_AUTHENTICATED: Decline = Decline {
    code: "payment_intent_authentication_failure",
    reason: None,
    param: None,
    message: "The provided payment method has failed authentication.",
};

const NO_FUNDS: Decline = declined("insufficient_funds", "Your card has insufficient funds.");
const LOST: Decline = declined("lost_card", DECLINED.message);
const STOLEN: Decline = declined("stolen_card", DECLINED.message);
const FRAUDULENT: Decline = declined("fraudulent", DECLINED.message);
const TOO_OFTEN: Decline = declined("card_velocity_exceeded", DECLINED.message);
const EXPIRED: Decline = Decline {
    code: "expired_card",
    param: Some("exp_month"),
    ..declined("expired_card", "Your card has expired.")
};
const WRONG_CVC: Decline = Decline {
    code: "incorrect_cvc",
    param: Some("cvc"),
    ..declined("incorrect_cvc", "Your card's security code is incorrect.")
};
const BROKEN: Decline = Decline {
    code: "processing_error",
    ..declined(
        "processing_error",
        "The card could not be processed; try again later.",
    )
};

const DECLINES: [Decline; 10] = [
    DECLINED,
    NOT_AUTHENTICATED,
    NO_FUNDS,
    LOST,
    STOLEN,
    FRAUDULENT,
    TOO_OFTEN,
    EXPIRED,
    WRONG_CVC,
    BROKEN,
];

const fn declined(reason: &'static str, message: &'static str) -> Decline {
    Decline {
        code: "card_declined",
        reason: Some(reason),
        param: None,
        message,
    }
}

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
        let found = DECLINES.into_iter().find(|decline| decline.word() == word);
        found.ok_or_else(|| D::Error::custom(format_args!("no card says {word}")))
    }
}

/// What a card does when it is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Card {
    /// Approves.
    Approved,
    /// Declines.
    Declined(Decline),
    /// Declines the first charge of an intent, then approves.
    DeclinedAtFirst,
    /// Wants its owner to authenticate on the bank's page.
    Challenged,
    /// As [`Card::Challenged`], and declines after that.
    ChallengedInVain,
    /// Approves; a refund to it fails.
    TakesNothingBack,
    /// Stays undecided until the test decides.
    Undecided,
    /// As [`Card::Undecided`], and the intent cannot be cancelled meanwhile.
    Late,
    /// As [`Card::Late`], and the money is captured with the approval, as by a transfer.
    Transfer,
}

impl Card {
    /// Finds the card of a payment method; `None` when there is none of that name.
    pub(super) fn of(payment_method: &str) -> Option<Self> {
        match payment_method {
            "pm_card_visa"
            | "pm_card_visa_debit"
            | "pm_card_mastercard"
            | "pm_card_mastercard_debit"
            | "pm_card_mastercard_prepaid"
            | "pm_card_amex"
            | "pm_card_discover"
            | "pm_card_diners"
            | "pm_card_jcb"
            | "pm_card_unionpay"
            | "pm_card_us"
            | "pm_card_gb"
            | "pm_card_de"
            | "pm_card_threeDSecureOptional" => Some(Self::Approved),
            "pm_card_visa_chargeDeclined" | "pm_card_chargeDeclined" => {
                Some(Self::Declined(DECLINED))
            }
            "pm_card_visa_chargeDeclinedInsufficientFunds"
            | "pm_card_chargeDeclinedInsufficientFunds" => Some(Self::Declined(NO_FUNDS)),
            "pm_card_visa_chargeDeclinedLostCard" => Some(Self::Declined(LOST)),
            "pm_card_visa_chargeDeclinedStolenCard" => Some(Self::Declined(STOLEN)),
            "pm_card_visa_chargeDeclinedVelocityLimitExceeded" => Some(Self::Declined(TOO_OFTEN)),
            "pm_card_chargeDeclinedFraudulent" => Some(Self::Declined(FRAUDULENT)),
            "pm_card_chargeDeclinedExpiredCard" => Some(Self::Declined(EXPIRED)),
            "pm_card_chargeDeclinedIncorrectCvc" => Some(Self::Declined(WRONG_CVC)),
            "pm_card_chargeDeclinedProcessingError" => Some(Self::Declined(BROKEN)),
            "pm_card_authenticationRequired"
            | "pm_card_threeDSecure2Required"
            | "pm_card_threeDSecureRequired" => Some(Self::Challenged),
            "pm_card_threeDSecureRequiredChargeDeclined" => Some(Self::ChallengedInVain),
            "pm_card_refundFail" => Some(Self::TakesNothingBack),
            "pm_card_declinedAtFirst" => Some(Self::DeclinedAtFirst),
            "pm_card_undecided" => Some(Self::Undecided),
            "pm_card_late" => Some(Self::Late),
            "pm_card_transfer" => Some(Self::Transfer),
            _ => None,
        }
    }
}

/// What a card answers at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charged {
    /// It approved, or has not decided yet.
    Taken,
    /// No.
    Declined,
}

/// The final decision of a card or its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Approved,
    /// No.
    Declined,
}
