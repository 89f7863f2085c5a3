//! What the buyers of a connection ask, again and again, each on seats of the connection's own.

use crate::load::{Makers, Requests, Turn};

use super::super::fresh::row_label;

/// Seats of a row; each connection has a row.
pub(super) const SEATS_PER_CONNECTION: u64 = 10;

const CREATED: u16 = 201;

/// The requests of all buyers, by connection.
pub(super) fn makers(requests: &Requests, event: &'static str) -> Makers {
    let requests = requests.clone();
    Box::new(move |connection| {
        let mut buyers = Buyers {
            requests: requests.clone(),
            event,
            row: row_label(u64::try_from(connection).unwrap_or(0)),
            connection,
            purchases: 0,
            id: String::new(),
            next: Step::Hold,
        };
        Box::new(move |turn, buffer| {
            buyers.take_answer(turn);
            buyers.write_next(turn.request, buffer);
            true
        })
    })
}

/// A step of a purchase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Hold,
    /// Another buyer wants the held seat.
    Refuse,
    Confirm,
    Look,
    Cancel,
    HoldAgain,
    Release,
}

struct Buyers {
    requests: Requests,
    event: &'static str,
    row: String,
    connection: usize,
    purchases: u64,
    /// Of the hold or the booking.
    id: String,
    next: Step,
}

impl Buyers {
    fn write_next(&mut self, request: u64, buffer: &mut Vec<u8>) {
        let Self {
            requests,
            event,
            row,
            connection,
            id,
            ..
        } = self;
        let key = format!("{connection}-{request}");
        let seat = self.purchases % SEATS_PER_CONNECTION + 1;
        let body = format!(r#"{{"holder":"user-{key}","units":[{{"seat":"{row}-{seat}"}}]}}"#);
        let mut post = |path: String, body: &str| {
            requests.post_once(
                buffer,
                format_args!("{path}"),
                format_args!("{key}"),
                format_args!("{body}"),
            );
        };
        self.next = match self.next {
            Step::Hold => {
                post(format!("/v1/events/{event}/holds"), &body);
                Step::Refuse
            }
            Step::Refuse => {
                post(format!("/v1/events/{event}/holds"), &body);
                Step::Confirm
            }
            Step::Confirm => {
                post(format!("/v1/holds/{id}/confirm"), "{}");
                Step::Look
            }
            Step::Look => {
                requests.bare(buffer, "GET", format_args!("/v1/events/{event}/seats"));
                Step::Cancel
            }
            Step::Cancel => {
                post(format!("/v1/bookings/{id}/cancel"), "{}");
                Step::HoldAgain
            }
            Step::HoldAgain => {
                post(format!("/v1/events/{event}/holds"), &body);
                Step::Release
            }
            Step::Release => {
                requests.bare(buffer, "DELETE", format_args!("/v1/holds/{id}"));
                Step::Hold
            }
        };
    }

    /// Learns the id of what was made. Where nothing was, the next purchase begins, on the next seat.
    fn take_answer(&mut self, turn: Turn<'_>) {
        if !matches!(self.next, Step::Refuse | Step::Look | Step::Release) {
            self.purchases += u64::from(self.next == Step::Hold);
            return;
        }
        let made = turn.last.filter(|answer| answer.status == CREATED);
        if let Some(id) = made.and_then(|answer| id_of(answer.body)) {
            id.clone_into(&mut self.id);
        } else {
            self.next = Step::Hold;
            self.purchases += 1;
        }
    }
}

/// The id in the JSON of a new hold or booking, without parsing the rest: our own answers only.
fn id_of(body: &[u8]) -> Option<&str> {
    let (_, after) = std::str::from_utf8(body).ok()?.split_once(r#""id":""#)?;
    Some(after.split_once('"')?.0)
}
