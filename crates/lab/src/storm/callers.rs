//! What the users of a storm send: holds of one wanted seat after the other, after any answer.

use std::net::SocketAddr;
use std::sync::Arc;

use super::fixture::{Fixture, Users};
use crate::load::{Holds, Makers, Transport, Wish};

/// Builds the users' requests, by connection. Neighbours begin with different seats.
pub(super) fn makers(transport: Transport, address: SocketAddr, fixture: &Fixture) -> Makers {
    let seats: Arc<[String]> = fixture.seats.clone().into();
    let event: Arc<str> = fixture.event.as_str().into();
    let (tokens, names_holders) = match &fixture.users {
        Users::Holders(key) => (std::slice::from_ref(key), true),
        Users::Sessions(sessions) => (sessions.as_slice(), false),
    };
    let tokens = tokens.iter();
    let tokens = tokens.map(|token| Holds::new(transport, address, token));
    let tokens: Vec<Holds> = tokens.collect();
    Box::new(move |connection| {
        let holds = tokens.get(connection).or(tokens.first()).cloned();
        let (seats, event) = (Arc::clone(&seats), Arc::clone(&event));
        Box::new(move |turn, buffer| {
            let number = turn.request;
            let at = usize::try_from(number).unwrap_or_default();
            let at = at.wrapping_add(connection);
            let Some((holds, seat)) = holds.as_ref().zip(seats.get(at % seats.len().max(1))) else {
                return false;
            };
            let holder = format_args!("user-{connection}-{number}");
            let wish = Wish {
                event: format_args!("{event}"),
                holder: names_holders.then_some(holder),
                seat: format_args!("{seat}"),
            };
            holds.write(buffer, wish);
            true
        })
    })
}
