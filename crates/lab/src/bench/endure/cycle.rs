//! The requests of the buyers of a connection, over and over, on seats of the connection's own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::load::{Makers, Requests, Turn, hold_id};

use super::super::fresh::row_label;

/// Seats of a row; each connection has a row.
pub(super) const SEATS_PER_CONNECTION: u64 = 10;

/// Counts of answers with another status than their step expects, by step and status.
pub(super) type Odd = Arc<Mutex<BTreeMap<(Step, u16), u64>>>;

/// Builds the requests of all buyers, by connection.
pub(super) fn makers(requests: &Requests, event: &'static str, odd: &Odd) -> Makers {
    let (requests, odd) = (requests.clone(), Arc::clone(odd));
    Box::new(move |connection| {
        let mut buyers = Buyers {
            requests: requests.clone(),
            odd: Arc::clone(&odd),
            event,
            row: row_label(u64::try_from(connection).unwrap_or(0)),
            connection,
            purchases: 0,
            id: String::new(),
            step: Step::Hold,
        };
        Box::new(move |turn, buffer| {
            if turn.request > 0 {
                buyers.take_answer(turn);
            }
            buyers.write_next(turn.request, buffer);
            true
        })
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Hold,
    /// Another buyer wants the held seat.
    Refuse,
    Confirm,
    Look,
    Cancel,
    HoldAgain,
    Release,
}

impl Step {
    /// Returns the status that the step must be answered with, and the step after it. Seats, holders and keys are of
    /// one connection alone, so nothing but the second hold of a held seat can be refused.
    fn rule(self) -> (u16, Self) {
        match self {
            Self::Hold => (201, Self::Refuse),
            Self::Refuse => (409, Self::Confirm),
            Self::Confirm => (201, Self::Look),
            Self::Look => (200, Self::Cancel),
            Self::Cancel => (200, Self::HoldAgain),
            Self::HoldAgain => (201, Self::Release),
            Self::Release => (200, Self::Hold),
        }
    }
}

struct Buyers {
    requests: Requests,
    odd: Odd,
    event: &'static str,
    row: String,
    connection: usize,
    purchases: u64,
    /// The id of the hold or the booking.
    id: String,
    /// The next step; while an answer is taken, the one that it answers.
    step: Step,
}

impl Buyers {
    fn write_next(&self, request: u64, buffer: &mut Vec<u8>) {
        let (requests, event, row, id) = (&self.requests, self.event, &self.row, &self.id);
        let key = format!("{}-{request}", self.connection);
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
        match self.step {
            Step::Hold | Step::Refuse | Step::HoldAgain => {
                post(format!("/v1/events/{event}/holds"), &body);
            }
            Step::Confirm => post(format!("/v1/holds/{id}/confirm"), "{}"),
            Step::Look => requests.bare(buffer, "GET", format_args!("/v1/events/{event}/seats")),
            Step::Cancel => post(format!("/v1/bookings/{id}/cancel"), "{}"),
            Step::Release => requests.bare(buffer, "DELETE", format_args!("/v1/holds/{id}")),
        }
    }

    /// Judges the answer and learns the id of what was made. After an odd answer or none the next purchase begins, on
    /// the next seat.
    fn take_answer(&mut self, turn: Turn<'_>) {
        let (status, next) = self.step.rule();
        let found = turn.last.map(|answer| answer.status);
        if let Some(odd) = found.filter(|found| *found != status) {
            let mut all = self.odd.lock().unwrap_or_else(PoisonError::into_inner);
            *all.entry((self.step, odd)).or_default() += 1;
        }
        if let Some(id) = hold_id(turn.last) {
            id.clone_into(&mut self.id);
        }
        self.step = if found == Some(status) {
            next
        } else {
            Step::Hold
        };
        self.purchases += u64::from(self.step == Step::Hold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Answer;

    #[test]
    fn a_refusal_is_right_at_one_step_alone_and_a_second_hold_there_is_odd() {
        let odd = Odd::default();
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let mut maker = makers(&Requests::new(address, "k"), "e", &odd)(0);
        let mut buffer = Vec::new();
        // Hold, refused, confirm; hold, sold twice; hold that is refused; none; hold.
        let answers = [201, 409, 409, 201, 201, 409, 0, 201].map(Some);
        for (request, status) in (0..).zip([None].into_iter().chain(answers)) {
            let status = status.filter(|status| *status > 0);
            let body = br#"{"id":"x"}"#;
            let last = status.map(|status| Answer { status, body });
            assert!(maker(Turn { request, last }, &mut buffer));
        }
        let expected = [
            ((Step::Hold, 409), 1),
            ((Step::Refuse, 201), 1),
            ((Step::Confirm, 409), 1),
        ];
        assert_eq!(*odd.lock().unwrap(), BTreeMap::from(expected));
    }
}
