//! What changes the status of an intent: a card, a bank's page, a capture, a cancel, time.

use super::super::cards::{Card, DECLINED, Decline, NOT_AUTHENTICATED, Verdict};
use super::super::failure::Failure;
use super::super::form::Form;
use super::super::intent::{Charge, Expansion, Status};
use super::super::money::MoneyEffect;
use super::{Account, Answered, amount_of};

/// The reasons for which an intent may be cancelled.
const REASONS: [&str; 4] = [
    "duplicate",
    "fraudulent",
    "requested_by_customer",
    "abandoned",
];

impl Account {
    pub(super) fn charge_card(&mut self, id: &str, card: Card) -> Answered {
        match card {
            Card::Declined(decline) => self.decline(id, decline),
            Card::DeclinedAtFirst if self.known(id)?.declines == 0 => self.decline(id, DECLINED),
            Card::Approved | Card::DeclinedAtFirst | Card::TakesNothingBack => self.approve(id),
            Card::Challenged | Card::ChallengedInVain => {
                let page = self.bank_page(id);
                let intent = self.known_mut(id)?;
                intent.status = Status::RequiresAction;
                intent.bank_page = Some(page);
                self.told(id, "payment_intent.requires_action")
            }
            Card::Undecided => self.wait_for_bank(id, Status::Processing),
            Card::Late => self.wait_for_bank(id, Status::OutOfReach),
            Card::Transfer => {
                self.known_mut(id)?.captures_itself = true;
                self.wait_for_bank(id, Status::OutOfReach)
            }
        }
    }

    pub(super) fn bank_page(&self, id: &str) -> String {
        format!("{}/fake/intents/{id}/authenticate", self.base_url)
    }

    fn wait_for_bank(&mut self, id: &str, status: Status) -> Answered {
        self.known_mut(id)?.status = status;
        self.told(id, "payment_intent.processing")
    }

    /// Ends the bank's page: the buyer has authenticated, or failed to.
    pub(crate) fn authenticate(&mut self, id: &str, verdict: Verdict) -> Answered {
        let asked = |status: Status| status == Status::RequiresAction;
        let intent = self.known_if(id, "authenticated", asked)?;
        let decline = match (verdict, intent.card()) {
            (Verdict::Approved, Some(Card::ChallengedInVain)) => DECLINED,
            (Verdict::Approved, _) => return self.approve(id),
            (Verdict::Declined, _) => NOT_AUTHENTICATED,
        };
        // The page is done either way; the intent says that the bank declined.
        self.decline(id, decline).ok();
        Ok(self.known(id)?.json(Expansion::Named))
    }

    /// Lets a card that had not decided approve or decline.
    pub(crate) fn decide(&mut self, id: &str, verdict: Verdict) -> Answered {
        self.known_if(id, "decided", Status::is_undecided)?;
        if verdict == Verdict::Approved {
            return self.approve(id);
        }
        self.decline(id, DECLINED)
    }

    fn approve(&mut self, id: &str) -> Answered {
        let charge = self.new_charge(id)?;
        let intent = self.known_mut(id)?;
        let amount = charge.amount;
        intent.charge = Some(charge);
        intent.decline = None;
        intent.bank_page = None;
        intent.status = Status::RequiresCapture;
        let captures_itself = intent.captures_itself;
        self.enter(id, MoneyEffect::Authorised, amount);
        self.tell_charge("charge.succeeded", id);
        if captures_itself {
            return self.take(id, amount);
        }
        self.told(id, "payment_intent.amount_capturable_updated")
    }

    fn decline(&mut self, id: &str, decline: Decline) -> Answered {
        let charge = self.new_charge(id)?;
        let intent = self.known_mut(id)?;
        intent.charge = Some(Charge {
            is_declined: true,
            ..charge
        });
        intent.declines += 1;
        intent.decline = Some(decline);
        intent.payment_method = None;
        intent.bank_page = None;
        intent.status = Status::RequiresPaymentMethod;
        self.tell_charge("charge.failed", id);
        let shown = self.told(id, "payment_intent.payment_failed")?;
        Err(Failure::card(decline, shown))
    }

    pub(super) fn capture(&mut self, id: &str, form: &Form) -> Answered {
        let wanted = amount_of(form, "amount_to_capture")?;
        let intent = self.known_if(id, "captured", Status::may_capture)?;
        let capturable = intent.capturable();
        let amount = wanted.unwrap_or(capturable);
        if amount > capturable {
            let why = "it is more than is capturable";
            return Err(Failure::parameter("amount_to_capture", why));
        }
        self.take(id, amount)
    }

    fn take(&mut self, id: &str, amount: i64) -> Answered {
        let intent = self.known_mut(id)?;
        intent.status = Status::Succeeded;
        let mut rest = 0;
        if let Some(charge) = &mut intent.charge {
            rest = charge.amount - amount;
            charge.captured = amount;
            charge.refunded = rest;
        }
        self.enter(id, MoneyEffect::Captured, amount);
        self.enter(id, MoneyEffect::Voided, rest);
        self.tell_charge("charge.captured", id);
        self.told(id, "payment_intent.succeeded")
    }

    pub(super) fn cancel(&mut self, id: &str, form: &Form) -> Answered {
        self.known_if(id, "canceled", Status::may_cancel)?;
        let reason = form.get("cancellation_reason");
        if reason.is_some_and(|reason| !REASONS.contains(&reason)) {
            let why = format!("one of {}", REASONS.join(", "));
            return Err(Failure::parameter("cancellation_reason", &why));
        }
        self.give_up(id, reason.map(str::to_owned), MoneyEffect::Voided)
    }

    /// Cancels an intent whose authorisation was not captured in time.
    pub(crate) fn lapse(&mut self, id: &str) -> Answered {
        self.known_if(id, "lapsed", Status::may_capture)?;
        self.give_up(id, Some("automatic".to_owned()), MoneyEffect::Lapsed)
    }

    fn give_up(&mut self, id: &str, reason: Option<String>, effect: MoneyEffect) -> Answered {
        let intent = self.known_mut(id)?;
        let reserved = intent.capturable();
        intent.status = Status::Canceled;
        intent.cancellation_reason = reason;
        intent.bank_page = None;
        if let Some(charge) = intent.charge.as_mut().filter(|_| reserved > 0) {
            charge.refunded = charge.amount;
        }
        self.enter(id, effect, reserved);
        if reserved > 0 && effect == MoneyEffect::Lapsed {
            self.tell_charge("charge.expired", id);
        } else if reserved > 0 {
            self.tell_charge("charge.refunded", id);
        }
        self.told(id, "payment_intent.canceled")
    }

    fn new_charge(&mut self, id: &str) -> Result<Charge, Failure> {
        let name = self.name("ch");
        Ok(Charge {
            id: name,
            amount: self.known(id)?.amount,
            captured: 0,
            refunded: 0,
            is_declined: false,
            created_ms: self.now_ms,
        })
    }

    /// Adds a notice of the intent as it is now, and returns the intent.
    fn told(&mut self, id: &str, kind: &str) -> Answered {
        let intent = self.known(id)?.clone();
        self.tell_intent(kind, &intent);
        Ok(intent.json(Expansion::Named))
    }
}
