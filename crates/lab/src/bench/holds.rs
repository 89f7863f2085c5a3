//! Everybody gets the seat he wants, durably.

use std::sync::Arc;

use super::super::load::{Makers, RequestMaker, Turn};
use super::hall::{Filling, FreshSeats, admin, sell_key};
use super::requests::Requests;
use super::scenario::{Goal, Prepared, Scenario, Setting};

/// The scenarios `holds` and `holds-spread`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Rows fill up.
    InRows,
    /// Seats all over the hall: each changes another page of the ledger's table.
    Spread,
}

impl Scenario for Holds {
    fn name(&self) -> &'static str {
        match self {
            Self::InRows => "holds",
            Self::Spread => "holds-spread",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::InRows => {
                "POST hold of one fresh seat, row by row, each for another holder: durable before \
                 the answer"
            }
            Self::Spread => "the same all over halls of 40,000 seats",
        }
    }

    fn expects(&self) -> &'static [u16] {
        &[201]
    }

    fn goal(&self) -> Option<Goal> {
        (*self == Self::InRows).then_some(Goal {
            id: "P1",
            first: 400,
            full: 500,
        })
    }

    fn set_up<'a>(&'a self, setting: &'a Setting) -> Prepared<'a, Makers> {
        Box::pin(async move {
            let admin = admin(setting)?;
            let key = sell_key(admin).await?;
            let filling = match self {
                Self::InRows => Filling::InRows,
                Self::Spread => Filling::Spread,
            };
            let seats = FreshSeats::make(admin, "holds", setting.requests_max, filling).await?;
            Ok(makers_of(setting, &key, seats))
        })
    }
}

/// Makers that hold fresh seats.
pub(super) fn makers_of(setting: &Setting, key: &str, seats: FreshSeats) -> Makers {
    let (seats, requests) = (Arc::new(seats), Requests::new(setting.address, key));
    Box::new(move |_connection| {
        let maker = HoldMaker {
            seats: Arc::clone(&seats),
            requests: requests.clone(),
        };
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
