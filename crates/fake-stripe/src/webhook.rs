//! The sendings of a notice: their bytes and how they are signed. One notice may have several.

use serde_json::Value;

use super::limits::OLD_MS;
use super::plan::Delivery;
use super::signature;

/// The account's signing secrets: the current one, and one for while it is being replaced.
#[derive(Debug)]
pub(super) struct SigningSecrets {
    pub(super) first: String,
    pub(super) second: String,
}

/// The signing secret of another account.
const FOREIGN_SECRET: &str = "whsec_of_another";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signer {
    First,
    Second,
    Foreign,
}

/// One sending of a notice.
#[derive(Clone, Debug)]
pub(super) struct Webhook {
    /// The id of its notice.
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) body: String,
    signer: Signer,
    /// Age of its signature when it is sent, milliseconds.
    age_ms: i64,
    /// False for a replay, a forgery or wrong data. A genuine one is sent until it is accepted.
    pub(super) is_genuine: bool,
    pub(super) tries: u32,
}

impl Webhook {
    fn of(notice: &Value) -> Self {
        let text = |name| notice.get(name).and_then(Value::as_str).unwrap_or_default();
        Self {
            id: text("id").to_owned(),
            kind: text("type").to_owned(),
            body: notice.to_string(),
            signer: Signer::First,
            age_ms: 0,
            is_genuine: true,
            tries: 0,
        }
    }

    fn hostile(notice: &Value) -> Self {
        Self {
            is_genuine: false,
            ..Self::of(notice)
        }
    }

    /// Builds its `Stripe-Signature` header for a sending at this time.
    pub(super) fn signature(&self, secrets: &SigningSecrets, now_ms: i64) -> String {
        let secret = match self.signer {
            Signer::First => secrets.first.as_str(),
            Signer::Second => secrets.second.as_str(),
            Signer::Foreign => FOREIGN_SECRET,
        };
        let seconds = (now_ms - self.age_ms) / 1_000;
        signature::header(&[secret], seconds, self.body.as_bytes())
    }
}

/// Lists the sendings of a notice that is delivered in this way, in their order.
pub(super) fn webhooks(notice: &Value, way: Delivery) -> Vec<Webhook> {
    let genuine = Webhook::of(notice);
    match way {
        Delivery::Plain | Delivery::AfterNext | Delivery::BeforeReply | Delivery::HeldBack => {
            vec![genuine]
        }
        Delivery::Copies(copies) => vec![genuine; usize::from(copies)],
        Delivery::Dropped => Vec::new(),
        Delivery::ReplayedOld => {
            let old = Webhook {
                age_ms: OLD_MS,
                ..Webhook::hostile(notice)
            };
            vec![genuine, old]
        }
        Delivery::ReplayedResigned => vec![genuine, Webhook::hostile(notice)],
        Delivery::WrongAmount => vec![Webhook::hostile(&other_amount(notice)), genuine],
        Delivery::WrongAccount => vec![Webhook::hostile(&other_account(notice)), genuine],
        Delivery::WrongCurrency => vec![Webhook::hostile(&other_currency(notice)), genuine],
        Delivery::Forged => {
            let mut more = notice.clone();
            double_amounts(&mut more);
            let forged = Webhook {
                signer: Signer::Foreign,
                ..Webhook::hostile(&more)
            };
            vec![forged, genuine]
        }
        Delivery::SecondSecret => vec![Webhook {
            signer: Signer::Second,
            ..genuine
        }],
    }
}

/// Copies a notice with `ending` appended to its id.
fn renamed(notice: &Value, ending: &str) -> Value {
    let mut other = notice.clone();
    if let Some(Value::String(id)) = other.get_mut("id") {
        id.push_str(ending);
    }
    other
}

fn other_amount(notice: &Value) -> Value {
    let mut other = renamed(notice, "amount");
    double_amounts(&mut other);
    other
}

fn double_amounts(notice: &mut Value) {
    for name in ["amount", "amount_capturable", "amount_received"] {
        if let Some(amount) = notice.pointer_mut(&format!("/data/object/{name}")) {
            *amount = (amount.as_i64().unwrap_or_default() * 2).into();
        }
    }
}

fn other_currency(notice: &Value) -> Value {
    let mut other = renamed(notice, "currency");
    if let Some(currency) = other.pointer_mut("/data/object/currency") {
        let is_yen = currency.as_str() == Some("jpy");
        *currency = if is_yen { "eur" } else { "jpy" }.into();
    }
    other
}

fn other_account(notice: &Value) -> Value {
    let mut other = renamed(notice, "account");
    if let Some(fields) = other.as_object_mut() {
        fields.insert("account".to_owned(), "acct_of_another".into());
    }
    other
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notice() -> Value {
        let intent = json!({ "id": "pi_1", "amount": 900, "currency": "eur" });
        json!({ "id": "evt_1", "type": "t", "data": { "object": intent } })
    }

    #[test]
    fn the_genuine_one_is_sent_with_every_hostile_one() {
        for way in Delivery::HOSTILE {
            let sent = webhooks(&notice(), way);
            let genuine = sent.iter().filter(|webhook| webhook.is_genuine).count();
            let expected = if way == Delivery::Dropped {
                0
            } else if let Delivery::Copies(copies) = way {
                usize::from(copies)
            } else {
                1
            };
            assert_eq!(genuine, expected, "{way:?}");
            for webhook in sent.iter().filter(|webhook| webhook.is_genuine) {
                assert_eq!(webhook.body, notice().to_string(), "{way:?}");
            }
        }
    }

    #[test]
    fn a_lie_that_is_signed_has_another_name() {
        for way in [
            Delivery::WrongAmount,
            Delivery::WrongAccount,
            Delivery::WrongCurrency,
        ] {
            let lie = &webhooks(&notice(), way)[0];
            assert!(!lie.is_genuine && lie.signer == Signer::First);
            assert_ne!(lie.id, "evt_1", "{way:?}");
            assert_ne!(lie.body, notice().to_string(), "{way:?}");
        }
        let forged = &webhooks(&notice(), Delivery::Forged)[0];
        assert_eq!(
            (forged.id.as_str(), forged.signer),
            ("evt_1", Signer::Foreign)
        );
        assert!(forged.body.contains("1800"));
    }

    #[test]
    fn signatures_are_of_the_time_of_sending() {
        let secrets = SigningSecrets {
            first: "a".to_owned(),
            second: "b".to_owned(),
        };
        let sent = webhooks(&notice(), Delivery::ReplayedOld);
        let times: Vec<String> = sent
            .iter()
            .map(|webhook| webhook.signature(&secrets, 1_700_000_000_000))
            .map(|header| header.split(',').next().unwrap().to_owned())
            .collect();
        assert_eq!(times, ["t=1700000000", "t=1699999400"]);
        let second = &webhooks(&notice(), Delivery::SecondSecret)[0];
        let body = notice().to_string();
        assert_eq!(
            second.signature(&secrets, 5_000),
            signature::header(&["b"], 5, body.as_bytes())
        );
    }
}
