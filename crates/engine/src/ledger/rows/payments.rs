//! A payment without its state, as JSON: the state has a column of its own, for queries.

use serde::{Deserialize, Serialize};
use soldonce_core::{Amount, BookingId, GivenLines, Intent, Payment, PaymentState, Text, UnitNo};

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
    #[serde(default, skip_serializing_if = "is_zero")]
    elsewhere: i64,
    intent: Option<IntentColumns>,
    // Left out when there is none: most payments are no part of an exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exchange: Option<LinesColumns>,
    #[serde(default, skip_serializing_if = "is_zero")]
    credit: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    carried: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinesColumns {
    booking: String,
    units: Vec<u32>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes what it asks about by reference"
)]
const fn is_zero(amount: &i64) -> bool {
    *amount == 0
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
        elsewhere: payment.elsewhere.minor(),
        intent,
        exchange: payment.exchange.as_ref().map(|given| LinesColumns {
            booking: given.booking.to_string(),
            units: given.units.iter().map(|unit| unit.0).collect(),
        }),
        credit: payment.credit.minor(),
        carried: payment.carried.minor(),
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
    let exchange = columns.exchange.map(given_lines).transpose()?;
    Ok(Payment {
        state,
        amount: Amount::from_minor(columns.amount),
        captured: Amount::from_minor(columns.captured),
        refunded: Amount::from_minor(columns.refunded),
        bounced: Amount::from_minor(columns.bounced),
        returned: Amount::from_minor(columns.returned),
        elsewhere: Amount::from_minor(columns.elsewhere),
        intent,
        exchange,
        credit: Amount::from_minor(columns.credit),
        carried: Amount::from_minor(columns.carried),
    })
}

fn given_lines(columns: LinesColumns) -> Result<GivenLines, Damaged> {
    let booking: Result<BookingId, _> = columns.booking.parse();
    Ok(GivenLines {
        booking: booking.map_err(|_| Damaged::new(TABLE, "not a booking is exchanged"))?,
        units: columns.units.into_iter().map(UnitNo).collect(),
    })
}
