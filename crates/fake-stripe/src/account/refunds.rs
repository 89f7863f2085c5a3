//! Refunds: never of more than was captured. A refund may fail later.

use serde_json::Value;

use super::super::cards::Card;
use super::super::failure::Failure;
use super::super::form::Form;
use super::super::intent::{Intent, Status};
use super::super::money::MoneyEffect;
use super::super::refund::{Refund, RefundStatus};
use super::{Account, Answered, ApiCall, amount_of, list};

impl Account {
    pub(super) fn create_refund(&mut self, asked: &ApiCall<'_>) -> Answered {
        let form = asked.form;
        let id = form.get("payment_intent");
        let id = id.ok_or_else(|| Failure::omitted("payment_intent"))?;
        let wanted = amount_of(form, "amount")?;
        let intent = self.known(id)?;
        let amount = refundable(intent, wanted)?;
        let charge = intent.charge.as_ref().map(|charge| charge.id.clone());
        let currency = intent.currency.clone();
        let returns = intent.card() == Some(Card::TakesNothingBack);
        let refund = Refund {
            id: self.name("re"),
            intent: id.to_owned(),
            charge: charge.unwrap_or_default(),
            amount,
            currency,
            metadata: form.inside("metadata").collect(),
            status: RefundStatus::Succeeded,
            created_ms: self.now_ms,
        };
        let name = refund.id.clone();
        self.changed.insert(name.clone());
        self.refunds.insert(name.clone(), refund.clone());
        self.known_mut(id)?.refunds.push(name.clone());
        self.add_refunded(id, amount);
        self.enter(id, MoneyEffect::Refunded, amount);
        self.tell("refund.created", &refund.json());
        self.tell_charge("charge.refunded", id);
        if asked.refund_fails {
            return self.fail_refund(&name);
        }
        if returns {
            // The bank accepts it, and sends it back later.
            self.fail_refund(&name)?;
        }
        Ok(refund.json())
    }

    /// Fails a refund: the buyer's bank sends the money back. Does nothing if it failed before.
    pub(crate) fn fail_refund(&mut self, name: &str) -> Answered {
        let refund = self.refunds.get_mut(name);
        let refund = refund.ok_or_else(|| Failure::missing("refund", name))?;
        if refund.status == RefundStatus::Failed {
            return Ok(refund.json());
        }
        refund.status = RefundStatus::Failed;
        let refund = refund.clone();
        self.changed.insert(refund.id.clone());
        self.add_refunded(&refund.intent, -refund.amount);
        self.enter(&refund.intent, MoneyEffect::RefundFailed, refund.amount);
        self.tell("refund.failed", &refund.json());
        Ok(refund.json())
    }

    /// Returns every refund in Stripe's JSON, oldest first.
    pub(crate) fn refunds(&self) -> Vec<Value> {
        self.refunds.values().map(Refund::json).collect()
    }

    pub(super) fn retrieve_refund(&self, name: &str) -> Answered {
        let refund = self.refunds.get(name);
        let refund = refund.ok_or_else(|| Failure::missing("refund", name))?;
        Ok(refund.json())
    }

    pub(super) fn list_refunds(&self, form: &Form) -> Answered {
        let wanted = form.get("payment_intent");
        let is_wanted = |refund: &&Refund| wanted.is_none_or(|id| id == refund.intent);
        let newest_first = self.refunds.values().rev().filter(is_wanted);
        list("/v1/refunds", form, newest_first.map(Refund::json))
    }

    fn add_refunded(&mut self, intent: &str, amount: i64) {
        let intent = self.known_mut(intent).ok();
        if let Some(charge) = intent.and_then(|intent| intent.charge.as_mut()) {
            charge.refunded += amount;
        }
    }
}

/// Returns the amount to refund: `wanted`, else all that is left. Fails if less is left.
fn refundable(intent: &Intent, wanted: Option<i64>) -> Result<i64, Failure> {
    if intent.status != Status::Succeeded {
        return Err(Failure::state(intent, "refunded"));
    }
    let left = intent.refundable();
    if left == 0 {
        let message = "The charge has already been refunded.".to_owned();
        return Err(Failure::refund("charge_already_refunded", message));
    }
    let amount = wanted.unwrap_or(left);
    if amount > left {
        let message = format!("Refund amount ({amount}) is greater than what is left ({left}).");
        return Err(Failure::refund("amount_too_large", message));
    }
    Ok(amount)
}
