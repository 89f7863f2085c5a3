//! Holds and bookings as the API shows them. Borrowed from the rules' own values, written once.

use serde::{Serialize, Serializer};
use soldonce_core::{
    Amount, Booking, BookingId, Chart, Event, Hold, HoldId, HoldState, Payment, Seq, Text,
    Timestamp, UnitName, UnitNo,
};

/// A point of time, written as RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Rfc3339(pub Timestamp);

impl std::fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Beyond the year 9999 the latest time that has a name is written.
        let time = jiff::Timestamp::from_millisecond(self.0.ms()).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{time:.3}")
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

struct AsText<T>(T);

impl<T: std::fmt::Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

/// A unit as the API names it: a seat, or a place of an area; with the data that is asked for.
#[derive(Default, Serialize)]
pub struct UnitBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    seat: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    area: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<AsText<UnitName<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

impl<'a> UnitBody<'a> {
    /// Returns the public name of a unit.
    pub fn new(chart: &'a Chart, unit: UnitNo) -> Self {
        let name = chart.unit_name(unit);
        let (seat, area, place) = match name {
            UnitName::Seat(seat) => (Some(seat), None, None),
            UnitName::Place { area, .. } => (None, Some(area.id.as_str()), Some(AsText(name))),
        };
        Self {
            seat,
            area,
            place,
            ..Self::default()
        }
    }
}

/// Units after a staff command.
#[derive(Serialize)]
pub(super) struct UnitsBody<'a> {
    units: Vec<UnitBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

impl<'a> UnitsBody<'a> {
    pub(super) fn new(chart: &'a Chart, units: &[UnitNo], seq: Option<Seq>) -> Self {
        let units = units.iter().map(|unit| UnitBody::new(chart, *unit));
        Self {
            units: units.collect(),
            seq: seq.map(|seq| seq.0),
        }
    }
}

/// A hold as the API shows it.
#[derive(Serialize)]
pub struct HoldBody<'a> {
    id: AsText<HoldId>,
    event: &'a str,
    holder: &'a str,
    state: &'static str,
    fence: u64,
    units: Vec<UnitBody<'a>>,
    total: i64,
    currency: &'a str,
    created_at: Rfc3339,
    expires_at: Rfc3339,
    max_expires_at: Rfc3339,
    booking: Option<AsText<BookingId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    together: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

impl<'a> HoldBody<'a> {
    /// Shows `hold` of `event` in `state`, the one at the time of the answer.
    pub fn new(event: &'a Event, hold: &'a Hold, state: &'a HoldState, seq: Option<Seq>) -> Self {
        let unit = |held: &soldonce_core::HeldUnit| UnitBody {
            price: Some(held.price.minor()),
            version: Some(held.version.0),
            ..UnitBody::new(&event.chart, held.unit)
        };
        Self {
            id: AsText(hold.id),
            event: event.id.as_str(),
            holder: hold.holder.name.as_str(),
            state: state.as_str(),
            fence: hold.fence.0,
            units: hold.units.iter().map(unit).collect(),
            total: hold.total().minor(),
            currency: event.currency.as_str(),
            created_at: Rfc3339(hold.created_at),
            expires_at: Rfc3339(hold.expires_at),
            max_expires_at: Rfc3339(hold.max_expires_at),
            booking: state.booking().map(AsText),
            together: hold.together,
            reason: state.reason().map(Text::as_str),
            seq: seq.map(|seq| seq.0),
        }
    }
}

/// A cancelled event, as a message shows it: without the counts and the policy of its page.
#[derive(Serialize)]
pub(crate) struct CancelledEventBody<'a> {
    id: &'a str,
    name: &'a str,
    starts_at: Option<Rfc3339>,
    reason: &'a str,
}

impl<'a> CancelledEventBody<'a> {
    /// Shows a cancelled event; `None` for one that is open.
    pub(crate) fn new(event: &'a Event) -> Option<Self> {
        let reason = event.cancelled()?.as_str();
        Some(Self {
            id: event.id.as_str(),
            name: event.name.as_str(),
            starts_at: event.starts_at.map(Rfc3339),
            reason,
        })
    }
}

/// A booking as the API shows it.
#[derive(Serialize)]
pub struct BookingBody<'a> {
    id: AsText<BookingId>,
    event: &'a str,
    holder: &'a str,
    hold: Option<AsText<HoldId>>,
    state: &'static str,
    fence: u64,
    lines: Vec<UnitBody<'a>>,
    total: i64,
    currency: &'a str,
    reference: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<ExchangeBody<'a>>,
    #[serde(skip_serializing_if = "PaymentShown::is_later")]
    payment: PaymentShown<'a>,
    created_at: Rfc3339,
    confirmed_at: Option<Rfc3339>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

/// The lines that were given back for a booking, or will be when it is paid.
#[derive(Serialize)]
struct ExchangeBody<'a> {
    booking: AsText<BookingId>,
    release: Vec<UnitBody<'a>>,
    /// The amount of its own payment.
    difference: i64,
    /// The part of the other booking's money that belongs to this one.
    credit: i64,
}

impl<'a> ExchangeBody<'a> {
    fn new(chart: &'a Chart, payment: &Payment) -> Option<Self> {
        let given = payment.exchange.as_ref()?;
        let units = given.units.iter();
        Some(Self {
            booking: AsText(given.booking),
            release: units.map(|unit| UnitBody::new(chart, *unit)).collect(),
            difference: payment.amount.minor(),
            credit: payment.credit.minor(),
        })
    }
}

/// The payment of a booking. The answer to checkout gets it when the provider was asked: it is
/// written behind the rest, like a hold's secret.
#[derive(Serialize)]
#[serde(untagged)]
enum PaymentShown<'a> {
    None,
    Known(PaymentBody<'a>),
    Later,
}

impl<'a> PaymentShown<'a> {
    fn new(payment: Option<&'a Payment>) -> Self {
        match payment {
            None => Self::None,
            Some(payment) if payment.intent.is_none() => Self::Later,
            Some(payment) => Self::Known(PaymentBody::new(payment)),
        }
    }

    fn is_later(&self) -> bool {
        matches!(self, Self::Later)
    }
}

#[derive(Serialize)]
struct PaymentBody<'a> {
    state: &'static str,
    amount: i64,
    captured: i64,
    refunded: i64,
    /// The part of what was to be refunded that staff settled elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<i64>,
    paid: i64,
    /// The part of it that is the credit of bookings that its lines were given back for.
    #[serde(skip_serializing_if = "Option::is_none")]
    carried: Option<i64>,
    provider: Option<&'a str>,
    intent: Option<&'a str>,
}

impl<'a> PaymentBody<'a> {
    fn new(payment: &'a Payment) -> Self {
        let intent = payment.intent.as_ref();
        let shown = |amount: Amount| Some(amount.minor()).filter(|minor| *minor > 0);
        Self {
            state: payment.state.as_str(),
            amount: payment.amount.minor(),
            captured: payment.captured.minor(),
            refunded: payment.given_back().minor(),
            elsewhere: shown(payment.elsewhere),
            paid: payment.paid().minor(),
            carried: shown(payment.carried),
            provider: intent.map(|intent| intent.provider.as_str()),
            intent: intent.map(|intent| intent.id.as_str()),
        }
    }
}

impl<'a> BookingBody<'a> {
    /// Shows `booking` of `event`.
    pub fn new(event: &'a Event, booking: &'a Booking, seq: Option<Seq>) -> Self {
        let line = |line: &soldonce_core::Line| UnitBody {
            price: Some(line.price.minor()),
            version: Some(line.version.0),
            state: Some(line.state.as_str()),
            ..UnitBody::new(&event.chart, line.unit)
        };
        let payment = booking.payment.as_deref();
        Self {
            id: AsText(booking.id),
            event: event.id.as_str(),
            holder: booking.holder.name.as_str(),
            hold: booking.hold.map(AsText),
            state: booking.state.as_str(),
            fence: booking.fence.0,
            lines: booking.lines.iter().map(line).collect(),
            total: booking.total().minor(),
            currency: event.currency.as_str(),
            reference: booking.reference.as_ref().map(Text::as_str),
            exchange: payment.and_then(|payment| ExchangeBody::new(&event.chart, payment)),
            payment: PaymentShown::new(payment),
            created_at: Rfc3339(booking.created_at),
            confirmed_at: booking.confirmed_at.map(Rfc3339),
            seq: seq.map(|seq| seq.0),
        }
    }
}
