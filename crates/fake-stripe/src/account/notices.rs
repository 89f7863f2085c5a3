//! The notices of what happened to the account, as events of Stripe.

use serde_json::{Value, json};

use super::super::API_VERSION;
use super::super::form::Form;
use super::super::intent::{Expansion, Intent};
use super::super::limits::REMEMBERED_MAX;
use super::{Account, Answered, list};

impl Account {
    pub(super) fn tell_intent(&mut self, kind: &str, intent: &Intent) {
        self.tell(kind, &intent.json(Expansion::Named));
    }

    /// Adds a notice of the charge of an intent, if it has one.
    pub(super) fn tell_charge(&mut self, kind: &str, intent: &str) {
        if let Some(intent) = self.intents.get(intent)
            && let Some(charge) = &intent.charge
        {
            let shown = intent.charge_json(charge);
            self.tell(kind, &shown);
        }
    }

    pub(super) fn tell(&mut self, kind: &str, of: &Value) {
        let notice = json!({
            "id": self.name("evt"),
            "object": "event",
            "api_version": API_VERSION,
            "created": self.now_ms / 1_000,
            "data": { "object": of },
            "livemode": false,
            "pending_webhooks": 1,
            "request": { "id": null, "idempotency_key": self.key },
            "type": kind,
        });
        if self.notices.len() >= REMEMBERED_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(notice.clone());
        self.fresh.push(notice);
    }

    pub(super) fn list_notices(&self, form: &Form) -> Answered {
        let kind = form.get("type");
        let is_wanted = |notice: &&Value| {
            kind.is_none_or(|kind| notice.get("type").and_then(Value::as_str) == Some(kind))
        };
        let newest_first = self.notices.iter().rev().filter(is_wanted);
        list("/v1/events", form, newest_first.cloned())
    }
}
