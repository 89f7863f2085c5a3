//! Bookings and their lines.

use soldonce_core::{
    Amount, Booking, BookingState, Line, LineState, PaymentState, Text, Timestamp,
};

use super::Damaged;
use super::codes::number;
use super::column::Column;
use super::payments::{payment_from_json, payment_to_json};
use super::reader::Reader;

/// The columns that [`get`] reads; `$more` are the store's own columns in their middle.
macro_rules! booking_columns {
    ($more:literal) => {
        concat!(
            " id, event_no, caller, holder, hold, state, fence,",
            $more,
            " reference, payment, created_at, confirmed_at, payment_detail"
        )
    };
}

/// The SQL condition of a booking whose payment has not ended (`created`, `action_required`,
/// `processing`, `authorised`, `declined`), or whose money must go back (`needs_refund`). Indexes
/// have the same text.
macro_rules! unsettled {
    () => {
        "payment < 4 OR payment = 10 OR state = 6"
    };
}

/// The columns that [`get_line`] reads.
macro_rules! line_columns {
    () => {
        "unit_no, price, version, state"
    };
}

/// Writes a booking's payment without its state as JSON; none if it has no payment.
pub(crate) fn detail(booking: &Booking) -> Result<Option<String>, Damaged> {
    let payment = booking.payment.as_ref();
    payment.map(|payment| payment_to_json(payment)).transpose()
}

/// Returns the columns of a booking with this [`detail`].
pub(crate) fn put<'a>(booking: &'a Booking, detail: Option<&'a str>) -> [Column<'a>; 12] {
    let payment = booking.payment.as_ref();
    [
        Column::Id(*booking.id.bytes()),
        Column::Small(booking.event.0),
        Column::Id(*booking.holder.caller.bytes()),
        Column::Text(booking.holder.name.as_str()),
        Column::OptId(booking.hold.map(|hold| *hold.bytes())),
        Column::Code(number(&BookingState::ALL, &booking.state)),
        Column::Count(booking.fence.0),
        Column::OptText(booking.reference.as_ref().map(Text::as_str)),
        Column::OptCode(payment.map(|payment| number(&PaymentState::ALL, &payment.state))),
        Column::Long(booking.created_at.ms()),
        Column::OptLong(booking.confirmed_at.map(Timestamp::ms)),
        Column::AddedText(detail),
    ]
}

/// Reads a booking without its lines, and with `more` the store's own columns in the middle.
pub(crate) fn get<'a, T>(
    row: &mut Reader<'a>,
    more: impl FnOnce(&mut Reader<'a>) -> Result<T, Damaged>,
) -> Result<(Booking, T), Damaged> {
    let mut booking = Booking {
        id: row.get()?,
        event: row.get()?,
        holder: row.get()?,
        hold: row.get()?,
        state: row.code(&BookingState::ALL)?,
        fence: row.get()?,
        lines: Vec::new(),
        reference: None,
        payment: None,
        created_at: Timestamp::ZERO,
        confirmed_at: None,
    };
    let more = more(row)?;
    booking.reference = row.get()?;
    let payment = row.get()?;
    booking.created_at = row.get()?;
    booking.confirmed_at = row.get()?;
    booking.payment = match (payment, row.added_text()?) {
        (None, None) => None,
        (Some(state), Some(json)) => {
            let state = super::codes::value(&PaymentState::ALL, state, "bookings")?;
            Some(Box::new(payment_from_json(state, json)?))
        }
        (Some(_), None) | (None, Some(_)) => return Err(row.illegal("payment")),
    };
    Ok((booking, more))
}

/// Returns the columns of a line without those that say whose it is: booking, number, event.
pub(crate) fn put_line(line: &Line) -> [Column<'static>; 4] {
    [
        Column::Small(line.unit.0),
        Column::Long(line.price.minor()),
        Column::Count(line.version.0),
        Column::Code(number(&LineState::ALL, &line.state)),
    ]
}

pub(crate) fn get_line(row: &mut Reader<'_>) -> Result<Line, Damaged> {
    Ok(Line {
        unit: row.get()?,
        price: Amount::from_minor(row.get()?),
        version: row.get()?,
        state: row.code(&LineState::ALL)?,
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, params};

    use super::*;

    #[test]
    fn a_booking_is_unsettled_by_the_numbers_of_its_states() {
        let store = Connection::open_in_memory().unwrap();
        let sql = concat!(
            "-- is_unsettled\nSELECT coalesce(",
            unsettled!(),
            ", 0) FROM (SELECT ?1 AS payment, ?2 AS state)"
        );
        let open = [
            PaymentState::Created,
            PaymentState::ActionRequired,
            PaymentState::Processing,
            PaymentState::Authorised,
            PaymentState::Declined,
        ];
        for payment in PaymentState::ALL.map(Some).into_iter().chain([None]) {
            let is_open = payment.is_some_and(|payment| open.contains(&payment));
            for state in BookingState::ALL {
                let stored = params![
                    payment.map(|payment| number(&PaymentState::ALL, &payment)),
                    number(&BookingState::ALL, &state),
                ];
                let is_unsettled: bool = store.query_row(sql, stored, |row| row.get(0)).unwrap();
                let is_due = is_open || state == BookingState::NeedsRefund;
                assert_eq!(is_unsettled, is_due, "{payment:?} {state:?}");
            }
        }
    }
}
