//! A payment beside its state, as JSON: the state has a column of its own, which is searched.

use serde::{Deserialize, Serialize};
use soldonce_core::{Amount, Intent, Payment, PaymentState, Text};

use super::Damaged;

const TABLE: &str = "bookings";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaymentColumns {
    amount: i64,
    captured: i64,
    refunded: i64,
    #[serde(default)]
    bounced: i64,
    returned: i64,
    intent: Option<IntentColumns>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IntentColumns {
    provider: String,
    id: String,
    client_secret: String,
}

pub(crate) fn payment_to_json(payment: &Payment) -> Result<String, Damaged> {
    let intent = payment.intent.as_ref().map(|intent| IntentColumns {
        provider: intent.provider.to_string(),
        id: intent.id.to_string(),
        client_secret: intent.client_secret.to_string(),
    });
    let columns = PaymentColumns {
        amount: payment.amount.minor(),
        captured: payment.captured.minor(),
        refunded: payment.refunded.minor(),
        bounced: payment.bounced.minor(),
        returned: payment.returned.minor(),
        intent,
    };
    serde_json::to_string(&columns).map_err(|error| Damaged::new(TABLE, error.to_string()))
}

pub(crate) fn payment_from_json(state: PaymentState, json: &str) -> Result<Payment, Damaged> {
    let columns: PaymentColumns =
        serde_json::from_str(json).map_err(|error| Damaged::new(TABLE, error.to_string()))?;
    let text =
        |text: &str| Text::parse(text).map_err(|error| Damaged::new(TABLE, error.to_string()));
    let intent = match columns.intent {
        Some(intent) => Some(Intent {
            provider: text(&intent.provider)?,
            id: text(&intent.id)?,
            client_secret: text(&intent.client_secret)?,
        }),
        None => None,
    };
    Ok(Payment {
        state,
        amount: Amount::from_minor(columns.amount),
        captured: Amount::from_minor(columns.captured),
        refunded: Amount::from_minor(columns.refunded),
        bounced: Amount::from_minor(columns.bounced),
        returned: Amount::from_minor(columns.returned),
        intent,
    })
}
