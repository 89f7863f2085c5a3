//! Everybody gets the seat he wants, durably.

use std::sync::Arc;

use super::super::load::{Makers, RequestMaker, Turn};
use super::hall::{FreshSeats, Requests, admin, sell_key};
use super::scenario::{Goal, Prepared, Scenario, Setting};

/// The scenario `holds`.
pub(crate) struct Holds;

impl Scenario for Holds {
    fn name(&self) -> &'static str {
        "holds"
    }

    fn about(&self) -> &'static str {
        "POST hold of one fresh seat, each for another holder: durable before the answer"
    }

    fn expects(&self) -> &'static [u16] {
        &[201]
    }

    fn goal(&self) -> Option<Goal> {
        Some(Goal { id: "P1", first: 400, full: 500 })
    }

    fn set_up<'a>(&'a self, setting: &'a Setting) -> Prepared<'a, Makers> {
        Box::pin(async move {
            let admin = admin(setting)?;
            let key = sell_key(admin).await?;
            let seats = FreshSeats::make(admin, "holds", setting.requests_max).await?;
            Ok(makers_of(setting, &key, seats))
        })
    }
}

/// Makers that hold fresh seats.
pub(super) fn makers_of(setting: &Setting, key: &str, seats: FreshSeats) -> Makers {
    let (seats, requests) = (Arc::new(seats), Requests::new(setting.address, key));
    Box::new(move |_connection| {
        let maker = HoldMaker { seats: Arc::clone(&seats), requests: requests.clone() };
        Box::new(maker) as Box<dyn RequestMaker>
    })
}

struct HoldMaker {
    seats: Arc<FreshSeats>,
    requests: Requests,
}

impl RequestMaker for HoldMaker {
    fn next(&mut self, _turn: Turn<'_>) -> Option<&[u8]> {
        let seat = self.seats.take()?;
        Some(self.requests.hold(self.seats.prefix(), seat))
    }
}
