//! An endpoint for webhooks and for notices of a provider that does what real ones do: it verifies,
//! accepts, refuses, redirects, or closes the connection after the request. It has its own code for
//! Standard Webhooks, and for what a sender must guarantee ([`violations`]).

mod judge;
mod signature;

use std::collections::VecDeque;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use rustls::ServerConfig;

use crate::Certificate;
use crate::server::{Intake, Request};

pub use judge::violations;
pub use signature::{is_by_one_of, sign};

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The path that was asked for.
    pub path: String,
    /// `webhook-id`.
    pub id: String,
    /// `webhook-timestamp`.
    pub timestamp: String,
    /// `webhook-signature`, or of a notice `stripe-signature`.
    pub signature: String,
    /// `content-type`.
    pub content_type: String,
    /// The raw body.
    pub body: Vec<u8>,
    /// What it was answered.
    pub answer: Answer,
}

/// How a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With this status.
    Status(u16),
    /// With this status and this `Retry-After`.
    Later(u16, String),
    /// With 307 to this `Location`.
    Redirect(String),
    /// With 200 and a body without end, until the sender closes the connection.
    Endless,
    /// Not at all: the connection is closed when the whole request was read.
    HangUp,
}

impl Answer {
    fn is_taken(&self) -> bool {
        matches!(self, Self::Status(200..=299) | Self::Endless)
    }
}

/// An endpoint on a private port. Ends when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    intake: Intake,
    is_encrypted: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    received: Vec<Received>,
    answers: VecDeque<Answer>,
}

impl Receiver {
    /// Starts an endpoint that answers every request with 200.
    pub fn start() -> Result<Self> {
        Self::with(None)
    }

    /// Starts an endpoint that answers every request with 200, by https with this certificate.
    pub fn start_encrypted(certificate: &Certificate) -> Result<Self> {
        Self::with(Some(certificate.server()?))
    }

    fn with(tls: Option<Arc<ServerConfig>>) -> Result<Self> {
        let state = Arc::<Mutex<State>>::default();
        let (own, is_encrypted) = (Arc::clone(&state), tls.is_some());
        let answer = move |request: Request, to: &mut dyn Write| take(request, &own, to);
        Ok(Self {
            intake: Intake::start(tls, Box::new(answer))?,
            is_encrypted,
            state,
        })
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.intake.address
    }

    /// Returns the URL for messages. With https its host is the name `localhost`, because
    /// certificates are for names.
    pub fn url(&self) -> String {
        let address = self.address();
        if self.is_encrypted {
            format!("https://localhost:{}/hooks", address.port())
        } else {
            format!("http://{address}/hooks")
        }
    }

    /// Queues answers, one for each further request. Requests without a queued answer get 200.
    pub fn answer_next(&self, answers: impl IntoIterator<Item = Answer>) {
        locked(&self.state).answers.extend(answers);
    }

    /// Returns the requests received so far, in their order.
    pub fn received(&self) -> Vec<Received> {
        locked(&self.state).received.clone()
    }

    /// Returns the requests so far that were answered with a 2xx status, in their order.
    pub fn taken(&self) -> Vec<Received> {
        let mut all = self.received();
        all.retain(|request| request.answer.is_taken());
        all
    }

    /// Returns how many connections were accepted, with any outcome.
    pub fn connections(&self) -> usize {
        self.intake.connections()
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(request: Request, state: &Mutex<State>, to: &mut dyn Write) -> Result<()> {
    let mut state = locked(state);
    let answer = state.answers.pop_front().unwrap_or(Answer::Status(200));
    state.received.push(Received {
        id: request.header("webhook-id"),
        timestamp: request.header("webhook-timestamp"),
        signature: ["webhook-signature", "stripe-signature"]
            .map(|name| request.header(name))
            .concat(),
        content_type: request.header("content-type"),
        path: request.path,
        body: request.body,
        answer: answer.clone(),
    });
    drop(state);
    respond(to, &answer)
}

fn respond(to: &mut dyn Write, answer: &Answer) -> Result<()> {
    let head = match answer {
        Answer::HangUp => return Ok(()),
        Answer::Status(status) => format!("{status} -\r\nContent-Length: 0"),
        Answer::Later(status, when) => {
            format!("{status} -\r\nRetry-After: {when}\r\nContent-Length: 0")
        }
        Answer::Redirect(to) => format!("307 -\r\nLocation: {to}\r\nContent-Length: 0"),
        Answer::Endless => "200 -\r\nTransfer-Encoding: chunked".to_owned(),
    };
    let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
    to.write_all(head.as_bytes())?;
    if *answer != Answer::Endless {
        return Ok(());
    }
    loop {
        to.write_all(b"1\r\na\r\n")?;
    }
}
