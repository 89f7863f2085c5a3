//! What the users of a storm send: holds of one wanted seat after the other, whatever the answer.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use super::super::load::{Makers, RequestMaker, Turn};
use super::fixture::{Fixture, Users};

/// The users' requests, by connection.
pub(super) fn makers(address: SocketAddr, fixture: &Fixture) -> Makers {
    let seats: Arc<[String]> = fixture.seats.clone().into();
    let path = format!("/v1/events/{}/holds", fixture.event);
    let head = |token: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\n"
        )
    };
    let (heads, names_holders) = match &fixture.users {
        Users::Holders(key) => (vec![head(key)], true),
        Users::Sessions(sessions) => (sessions.iter().map(|token| head(token)).collect(), false),
    };
    Box::new(move |connection| {
        let head = heads.get(connection).or(heads.first());
        let user = User {
            head: head.cloned().unwrap_or_default(),
            holder: names_holders.then_some(connection),
            seats: Arc::clone(&seats),
            first: connection,
            body: Vec::new(),
            whole: Vec::new(),
        };
        Box::new(user) as Box<dyn RequestMaker>
    })
}

/// One connection of the storm.
struct User {
    head: String,
    /// The number that its holders have in their names, if it names any.
    holder: Option<usize>,
    seats: Arc<[String]>,
    /// Which seat it wants first; neighbours begin with different ones.
    first: usize,
    body: Vec<u8>,
    whole: Vec<u8>,
}

impl RequestMaker for User {
    fn next(&mut self, turn: Turn<'_>) -> Option<&[u8]> {
        let request = usize::try_from(turn.request).ok()?;
        let at = self.first.wrapping_add(request) % self.seats.len().max(1);
        let seat = self.seats.get(at)?;
        self.body.clear();
        // Writing to memory does not fail.
        if let Some(number) = self.holder {
            write!(self.body, r#"{{"holder":"user-{number}-{request}","#).ok()?;
        } else {
            self.body.push(b'{');
        }
        write!(self.body, r#""units":[{{"seat":"{seat}"}}]}}"#).ok()?;
        self.whole.clear();
        self.whole.extend_from_slice(self.head.as_bytes());
        write!(self.whole, "content-length: {}\r\n\r\n", self.body.len()).ok()?;
        self.whole.extend_from_slice(&self.body);
        Some(&self.whole)
    }
}
