//! An endpoint for webhooks that does what real ones do: it verifies, takes, refuses, redirects, says
//! nothing, hangs up after it has taken. It knows the convention of Standard Webhooks by code of its own,
//! and what a sender owes it ([`violations`]).

mod judge;
mod signature;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result};

pub use judge::violations;
pub use signature::{is_by_one_of, sign};

/// Longest body that is taken, bytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The path that was asked for.
    pub path: String,
    /// `webhook-id`.
    pub id: String,
    /// `webhook-timestamp`.
    pub timestamp: String,
    /// `webhook-signature`.
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
    /// With 307 to this place.
    Redirect(String),
    /// With 200 and a body without end, until the sender hangs up.
    Endless,
    /// Not at all: the connection is closed when all of it was read.
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
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    received: Vec<Received>,
    answers: VecDeque<Answer>,
    /// The next request with each of these texts is answered so.
    answers_to: Vec<(String, Answer)>,
    connections: usize,
    is_over: bool,
}

impl Receiver {
    /// An endpoint that takes everything.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = Arc::<Mutex<State>>::default();
        let own = Arc::clone(&state);
        let thread = std::thread::spawn(move || accept(&listener, &own));
        Ok(Self {
            address,
            state,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where messages are to be sent.
    pub fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    /// The requests after those that have an answer are answered so, one each; without this, 200.
    pub fn answer_next(&self, answers: impl IntoIterator<Item = Answer>) {
        locked(&self.state).answers.extend(answers);
    }

    /// The next request whose body has this text is answered so, whenever it comes.
    pub fn answer_next_with(&self, text: &str, answer: Answer) {
        let mut state = locked(&self.state);
        state.answers_to.push((text.to_owned(), answer));
    }

    /// What came so far, in its sequence.
    pub fn received(&self) -> Vec<Received> {
        locked(&self.state).received.clone()
    }

    /// What came so far and was taken.
    pub fn taken(&self) -> Vec<Received> {
        let mut all = self.received();
        all.retain(|request| request.answer.is_taken());
        all
    }

    /// How often somebody connected, whatever came of it.
    pub fn connections(&self) -> usize {
        locked(&self.state).connections
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        locked(&self.state).is_over = true;
        // Wakes the thread that accepts, which then sees that it is over.
        TcpStream::connect(self.address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, state: &Mutex<State>) {
    for stream in listener.incoming() {
        {
            let mut state = locked(state);
            if state.is_over {
                break;
            }
            state.connections += 1;
        }
        if let Ok(stream) = stream {
            // A sender that goes away is none of our failures.
            take(&stream, state).ok();
        }
    }
}

fn take(stream: &TcpStream, state: &Mutex<State>) -> Result<()> {
    stream.set_read_timeout(Some(crate::PATIENCE))?;
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut request = Received {
        path: first.split(' ').nth(1).unwrap_or_default().to_owned(),
        id: String::new(),
        timestamp: String::new(),
        signature: String::new(),
        content_type: String::new(),
        body: Vec::new(),
        answer: Answer::Status(200),
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().context("an odd length")?,
            "content-type" => value.clone_into(&mut request.content_type),
            "webhook-id" => value.clone_into(&mut request.id),
            "webhook-timestamp" => value.clone_into(&mut request.timestamp),
            "webhook-signature" => value.clone_into(&mut request.signature),
            _ => {}
        }
    }
    anyhow::ensure!(length <= BODY_BYTES_MAX, "a message of {length} bytes");
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    let answer = {
        let mut state = locked(state);
        let body = String::from_utf8_lossy(&request.body);
        let mut known = state.answers_to.iter();
        let found = known.position(|(text, _)| body.contains(text));
        let next = match found {
            Some(at) => Some(state.answers_to.remove(at).1),
            None => state.answers.pop_front(),
        };
        drop(body);
        request.answer = next.unwrap_or(Answer::Status(200));
        let answer = request.answer.clone();
        state.received.push(request);
        answer
    };
    respond(stream, &answer)
}

fn respond(mut stream: &TcpStream, answer: &Answer) -> Result<()> {
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
    stream.write_all(head.as_bytes())?;
    if *answer != Answer::Endless {
        return Ok(());
    }
    loop {
        stream.write_all(b"1\r\na\r\n")?;
    }
}
