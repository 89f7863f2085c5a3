//! What the users of a storm send: holds of one wanted seat after the other, after any answer.

use std::net::SocketAddr;
use std::sync::Arc;

use super::fixture::{Fixture, Users};
use crate::load::{Makers, Requests};

/// The users' requests, by connection. Neighbours begin with different seats.
pub(super) fn makers(address: SocketAddr, fixture: &Fixture) -> Makers {
    let seats: Arc<[String]> = fixture.seats.clone().into();
    let path: Arc<str> = format!("/v1/events/{}/holds", fixture.event).into();
    let (tokens, names_holders) = match &fixture.users {
        Users::Holders(key) => (std::slice::from_ref(key), true),
        Users::Sessions(sessions) => (sessions.as_slice(), false),
    };
    let tokens = tokens.iter().map(|token| Requests::new(address, token));
    let tokens: Vec<Requests> = tokens.collect();
    Box::new(move |connection| {
        let requests = tokens.get(connection).or(tokens.first()).cloned();
        let (seats, path) = (Arc::clone(&seats), Arc::clone(&path));
        Box::new(move |turn, buffer| {
            let number = turn.request;
            let at = usize::try_from(number)
                .unwrap_or_default()
                .wrapping_add(connection);
            let Some((requests, seat)) = requests.as_ref().zip(seats.get(at % seats.len().max(1)))
            else {
                return false;
            };
            let holder = if names_holders {
                format!(r#""holder":"user-{connection}-{number}","#)
            } else {
                String::new()
            };
            requests.post(
                buffer,
                format_args!("{path}"),
                format_args!(r#"{{{holder}"units":[{{"seat":"{seat}"}}]}}"#),
            );
            true
        })
    })
}
