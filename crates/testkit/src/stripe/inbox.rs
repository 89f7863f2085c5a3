//! An endpoint that takes notices down: for tests of who sends them, and of who reads them.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result};

use super::limits::BODY_BYTES_MAX;

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
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    received: Vec<Received>,
    answers: VecDeque<u16>,
    is_over: bool,
}

impl Inbox {
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

    /// Where notices are to be sent.
    pub fn url(&self) -> String {
        format!("http://{}/webhook", self.address)
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

impl Drop for Inbox {
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
        if locked(state).is_over {
            break;
        }
        if let Ok(stream) = stream {
            // A sender that goes away is none of our failures.
            take(&stream, state).ok();
        }
    }
}

fn take(mut stream: &TcpStream, state: &Mutex<State>) -> Result<()> {
    stream.set_read_timeout(Some(crate::PATIENCE))?;
    let mut reader = BufReader::new(stream);
    let (mut length, mut signature) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().context("an odd length")?,
            "stripe-signature" => value.trim().clone_into(&mut signature),
            _ => {}
        }
    }
    anyhow::ensure!(length <= BODY_BYTES_MAX, "a notice of {length} bytes");
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let status = {
        let mut state = locked(state);
        state.received.push(Received { body, signature });
        state.answers.pop_front().unwrap_or(200)
    };
    let answer = format!("HTTP/1.1 {status} -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes())?;
    Ok(())
}
