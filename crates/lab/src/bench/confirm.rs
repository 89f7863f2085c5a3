//! A whole sale: hold a fresh seat, then confirm the hold. Two requests a pair.

use std::sync::Arc;

use super::super::load::{Makers, RequestMaker, Turn};
use super::hall::{Filling, FreshSeats, admin, sell_key};
use super::requests::{Requests, text_field};
use super::scenario::{Goal, Prepared, Scenario, Setting};

/// The scenario `confirm`.
pub(crate) struct Confirm;

impl Scenario for Confirm {
    fn name(&self) -> &'static str {
        "confirm"
    }

    fn about(&self) -> &'static str {
        "POST hold of a fresh seat, then POST confirm with an idempotency key: two requests a pair, \
         so that its ratio is that of pairs to half the echo"
    }

    fn expects(&self) -> &'static [u16] {
        &[201]
    }

    fn goal(&self) -> Option<Goal> {
        Some(Goal {
            id: "P3",
            first: 450,
            full: 450,
        })
    }

    fn set_up<'a>(&'a self, setting: &'a Setting) -> Prepared<'a, Makers> {
        Box::pin(async move {
            let admin = admin(setting)?;
            let key = sell_key(admin).await?;
            let most = setting.requests_max;
            let seats = FreshSeats::make(admin, "sales", most, Filling::InRows).await?;
            let (seats, requests) = (Arc::new(seats), Requests::new(setting.address, &key));
            let maker = move |_connection| {
                let maker = PairMaker {
                    seats: Arc::clone(&seats),
                    requests: requests.clone(),
                    last: Asked::Nothing,
                };
                Box::new(maker) as Box<dyn RequestMaker>
            };
            Ok(Box::new(maker) as Makers)
        })
    }
}

/// What a connection asked last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Hold,
    Confirm,
}

struct PairMaker {
    seats: Arc<FreshSeats>,
    requests: Requests,
    last: Asked,
}

impl RequestMaker for PairMaker {
    fn next(&mut self, turn: Turn<'_>) -> Option<&[u8]> {
        let held = (self.last == Asked::Hold).then_some(turn.last).flatten();
        let held = held.filter(|answer| answer.status == 201);
        if let Some(hold) = held.and_then(|answer| text_field(answer.body, "\"id")) {
            self.last = Asked::Confirm;
            return Some(self.requests.post(
                format_args!("/v1/holds/{hold}/confirm"),
                format_args!("idempotency-key: pay-{hold}\r\n"),
                format_args!(r#"{{"reference":"order-77"}}"#),
            ));
        }
        self.last = Asked::Hold;
        let seat = self.seats.take()?;
        Some(self.requests.hold(self.seats.prefix(), seat))
    }
}
