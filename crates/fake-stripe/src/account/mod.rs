//! The account as a model: what each call does to intents, charges and refunds, and its result.
//! It reads no clock and does no I/O; time is an argument.

mod kept;
mod notices;
mod pay;
mod refunds;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::cards::{Card, Verdict};
use super::failure::Failure;
use super::form::Form;
use super::intent::{Expansion, Intent, Status};
use super::known::is_currency;
use super::limits::{AMOUNT_MAX, AUTHORISATION_MS, LIST_MAX, REMEMBERED_MAX};
use super::money::{MoneyEffect, MoneyEntry};
use super::refund::Refund;
use super::route::Route;

pub(super) use kept::Changes;

pub(super) type Answered = Result<Value, Failure>;

/// One call whose caller was authenticated.
#[derive(Debug)]
pub(super) struct ApiCall<'a> {
    pub(super) route: Route,
    /// The id in the path.
    pub(super) id: &'a str,
    pub(super) form: &'a Form,
    /// The idempotency key, for the notices.
    pub(super) key: Option<&'a str>,
    /// Whether a refund that it creates fails.
    pub(super) refund_fails: bool,
}

#[derive(Debug, Default)]
pub(super) struct Account {
    /// The base URL of the bank's page.
    base_url: String,
    /// Makes the ids of this account differ from those of others.
    salt: u64,
    named: u64,
    intents: BTreeMap<String, Intent>,
    refunds: BTreeMap<String, Refund>,
    /// Ids of what changed since the last [`Account::take_changes`].
    changed: BTreeSet<String>,
    /// Ids of intents that are over, in the order of their end.
    over: VecDeque<String>,
    /// The effects on money so far. At twice [`REMEMBERED_MAX`] the older half is dropped.
    pub(super) entries: Vec<MoneyEntry>,
    notices: VecDeque<Value>,
    /// Notices that are still to be sent.
    pub(super) fresh: Vec<Value>,
    now_ms: i64,
    key: Option<String>,
}

impl Account {
    pub(super) fn new(base_url: String, salt: u64) -> Self {
        Self {
            base_url,
            salt,
            ..Self::default()
        }
    }

    /// Runs a call at this time and returns its result.
    pub(super) fn run(&mut self, now_ms: i64, asked: &ApiCall<'_>) -> Answered {
        self.at(now_ms);
        self.key = asked.key.map(str::to_owned);
        let answered = self.answer(asked);
        self.key = None;
        answered
    }

    fn answer(&mut self, asked: &ApiCall<'_>) -> Answered {
        let (id, form) = (asked.id, asked.form);
        match asked.route {
            Route::CreateIntent => self.create(form).and_then(|id| self.shown(&id, form)),
            Route::RetrieveIntent => self.shown(id, form),
            Route::Confirm => self.confirm(id, form).and_then(|_| self.shown(id, form)),
            Route::Capture => self.capture(id, form).and_then(|_| self.shown(id, form)),
            Route::Cancel => self.cancel(id, form).and_then(|_| self.shown(id, form)),
            Route::CreateRefund => self.create_refund(asked),
            Route::RetrieveRefund => self.retrieve_refund(id),
            Route::ListRefunds => self.list_refunds(form),
            Route::ListEvents => self.list_notices(form),
            Route::Authenticate => self.authenticate(id, verdict(form)),
        }
    }

    /// Moves to this time, never back. Authorisations that were not captured in time lapse.
    pub(super) fn at(&mut self, now_ms: i64) {
        self.now_ms = self.now_ms.max(now_ms);
        let until = self.now_ms - AUTHORISATION_MS;
        let is_over = |intent: &&Intent| {
            let charge = intent.charge.as_ref();
            intent.capturable() > 0 && charge.is_some_and(|charge| charge.created_ms <= until)
        };
        let over = self.intents.values().filter(is_over);
        let over: Vec<String> = over.map(|intent| intent.id.clone()).collect();
        for id in over {
            // Each of them may.
            self.lapse(&id).ok();
        }
    }

    /// Finds the client secret of an intent; `None` if there is no such intent.
    pub(super) fn client_secret(&self, id: &str) -> Option<&str> {
        Some(self.intents.get(id)?.client_secret.as_str())
    }

    /// Finds the booking of an intent; `None` if there is no such intent, or it has none.
    pub(super) fn booking(&self, id: &str) -> Option<&String> {
        self.intents.get(id)?.booking()
    }

    /// Returns every intent in Stripe's JSON.
    pub(super) fn intents(&self) -> Vec<Value> {
        let shown = |intent: &Intent| intent.json(Expansion::InFull);
        self.intents.values().map(shown).collect()
    }

    /// Creates an intent, and charges the card if the call confirms it. Returns the intent's id.
    fn create(&mut self, form: &Form) -> Result<String, Failure> {
        if self.intents.len() >= REMEMBERED_MAX {
            return Err(Failure::rate());
        }
        let amount = amount_of(form, "amount")?.ok_or_else(|| Failure::omitted("amount"))?;
        let currency = form.get("currency");
        let currency = currency.ok_or_else(|| Failure::omitted("currency"))?;
        if !is_currency(currency) {
            let why = format!("{currency} is none of the currencies of payments, in lower case");
            return Err(Failure::parameter("currency", &why));
        }
        let captures_itself = match form.get("capture_method").unwrap_or("automatic") {
            "manual" => false,
            "automatic" | "automatic_async" => true,
            _ => return Err(Failure::parameter("capture_method", "not one of them")),
        };
        let is_confirmed = match form.get("confirm").unwrap_or("false") {
            "true" => true,
            "false" => false,
            _ => return Err(Failure::parameter("confirm", "true or false")),
        };
        let payment_method = form.get("payment_method").map(card_named).transpose()?;
        if is_confirmed && payment_method.is_none() {
            return Err(Failure::omitted("payment_method"));
        }
        let id = self.name("pi");
        let client_secret = format!("{id}_secret_{:016x}", self.salt ^ self.named << 32);
        let intent = Intent {
            id: id.clone(),
            client_secret,
            amount,
            currency: currency.to_owned(),
            captures_itself,
            metadata: form.inside("metadata").collect(),
            status: match payment_method {
                Some(_) => Status::RequiresConfirmation,
                None => Status::RequiresPaymentMethod,
            },
            payment_method,
            charge: None,
            declines: 0,
            decline: None,
            cancellation_reason: None,
            bank_page: None,
            created_ms: self.now_ms,
            refunds: Vec::new(),
        };
        self.changed.insert(id.clone());
        self.tell_intent("payment_intent.created", &intent);
        self.intents.insert(id.clone(), intent);
        if is_confirmed {
            self.confirm(&id, form)?;
        }
        Ok(id)
    }

    fn confirm(&mut self, id: &str, form: &Form) -> Answered {
        let named = form.get("payment_method").map(card_named).transpose()?;
        self.known_if(id, "confirmed", Status::may_confirm)?;
        let intent = self.known_mut(id)?;
        intent.payment_method = named.or(intent.payment_method.take());
        match intent.card() {
            Some(card) => self.charge_card(id, card),
            None => Err(Failure::state(intent, "confirmed")),
        }
    }

    /// Changes the amount of an intent by hand.
    pub(super) fn reprice(&mut self, id: &str, amount: i64) -> Answered {
        self.known_mut(id)?.amount = amount;
        Ok(self.known(id)?.json(Expansion::Named))
    }

    /// Returns an intent in JSON, with its charge in full if the call expands it.
    fn shown(&self, id: &str, form: &Form) -> Answered {
        Ok(self.known(id)?.json(charge_shown(form)))
    }

    fn known(&self, id: &str) -> Result<&Intent, Failure> {
        self.intents
            .get(id)
            .ok_or_else(|| Failure::missing("payment_intent", id))
    }

    /// Finds an intent whose status permits a call; `what` is a participle.
    fn known_if(
        &self,
        id: &str,
        what: &str,
        may: impl Fn(Status) -> bool,
    ) -> Result<&Intent, Failure> {
        let intent = self.known(id)?;
        if !may(intent.status) {
            return Err(Failure::state(intent, what));
        }
        Ok(intent)
    }

    fn known_mut(&mut self, id: &str) -> Result<&mut Intent, Failure> {
        self.changed.insert(id.to_owned());
        self.intents
            .get_mut(id)
            .ok_or_else(|| Failure::missing("payment_intent", id))
    }

    /// Creates an unused id. Ids of one prefix are in the order of their creation.
    fn name(&mut self, prefix: &str) -> String {
        self.named += 1;
        format!("{prefix}_{:08x}{:012}", self.salt >> 32, self.named)
    }

    fn enter(&mut self, id: &str, effect: MoneyEffect, amount: i64) {
        if amount == 0 {
            return;
        }
        if self.entries.len() >= 2 * REMEMBERED_MAX {
            self.entries.drain(..REMEMBERED_MAX);
        }
        let booking = self.intents.get(id).and_then(Intent::booking).cloned();
        self.entries.push(MoneyEntry {
            at_ms: self.now_ms,
            intent: id.to_owned(),
            booking,
            effect,
            amount,
        });
    }
}

/// Reads the verdict of the bank's page: approved if `ok` is `true`.
fn verdict(form: &Form) -> Verdict {
    match form.get("ok") {
        Some("true") => Verdict::Approved,
        _ => Verdict::Declined,
    }
}

/// Checks that `name` is a payment method of the test mode, and returns it.
fn card_named(name: &str) -> Result<String, Failure> {
    let why = "no payment method of the test mode";
    let known = Card::of(name).map(|_| name.to_owned());
    known.ok_or_else(|| Failure::parameter("payment_method", why))
}

/// Tells how to show an intent's charge: in full if the form expands `latest_charge`.
fn charge_shown(form: &Form) -> Expansion {
    let expanded = ["expand[]", "expand[0]"].map(|name| form.get(name));
    if expanded.contains(&Some("latest_charge")) {
        Expansion::InFull
    } else {
        Expansion::Named
    }
}

/// Parses an amount in a form, minor units; `None` when it is not there.
fn amount_of(form: &Form, name: &str) -> Result<Option<i64>, Failure> {
    let Some(text) = form.get(name) else {
        return Ok(None);
    };
    let amount = text.parse().ok();
    let amount = amount.filter(|amount| (1..=AMOUNT_MAX).contains(amount));
    let why = || Failure::parameter(name, "a number of minor units, at least 1");
    amount.map(Some).ok_or_else(why)
}

/// Builds a list in Stripe's JSON: the newest first, at most `limit` (10 by default), after the id
/// in `starting_after`.
fn list(url: &str, form: &Form, mut newest_first: impl Iterator<Item = Value>) -> Answered {
    let limit = form.get("limit").map_or(Ok(10), str::parse).unwrap_or(0);
    if !(1..=LIST_MAX).contains(&limit) {
        return Err(Failure::parameter("limit", "1 to 100"));
    }
    if let Some(after) = form.get("starting_after")
        && !newest_first.any(|one| one.get("id").and_then(Value::as_str) == Some(after))
    {
        return Err(Failure::parameter(
            "starting_after",
            "the id of one in this list",
        ));
    }
    let mut data: Vec<Value> = newest_first.take(limit + 1).collect();
    let has_more = data.len() > limit;
    data.truncate(limit);
    Ok(json!({ "object": "list", "data": data, "has_more": has_more, "url": url }))
}
