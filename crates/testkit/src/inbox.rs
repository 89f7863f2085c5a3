//! An endpoint that takes notices down: for tests of who sends them, and of who reads them.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;

use crate::server::{Intake, Request};

/// A notice as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The raw body.
    pub body: Vec<u8>,
    /// Its `Stripe-Signature` header.
    pub signature: String,
}

/// An endpoint on a private port. Ends when it is dropped.
#[derive(Debug)]
pub struct Inbox {
    intake: Intake,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    received: Vec<Received>,
    answers: VecDeque<u16>,
}

impl Inbox {
    /// An endpoint that takes everything.
    pub fn start() -> Result<Self> {
        let state = Arc::<Mutex<State>>::default();
        let own = Arc::clone(&state);
        let answer = move |request: Request, to: &mut dyn Write| take(request, &own, to);
        Ok(Self {
            intake: Intake::start(None, Box::new(answer))?,
            state,
        })
    }

    /// Where notices are to be sent.
    pub fn url(&self) -> String {
        format!("http://{}/webhook", self.intake.address())
    }

    /// The next notice is answered so; without this, 200.
    pub fn answer_next(&self, status: u16) {
        locked(&self.state).answers.push_back(status);
    }

    /// What came so far.
    pub fn received(&self) -> Vec<Received> {
        locked(&self.state).received.clone()
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(request: Request, state: &Mutex<State>, to: &mut dyn Write) -> Result<()> {
    let status = {
        let mut state = locked(state);
        state.received.push(Received {
            signature: request.header("stripe-signature"),
            body: request.body,
        });
        state.answers.pop_front().unwrap_or(200)
    };
    let answer = format!("HTTP/1.1 {status} -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    to.write_all(answer.as_bytes())?;
    Ok(())
}
