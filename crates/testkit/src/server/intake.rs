//! An HTTP server that answers requests one after the other on a private port, in threads of its
//! own: for tests of the sender. An idle connection blocks no other. It ends when it is dropped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::PATIENCE;

/// Longest body of a request that is read, bytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Returns the value of a header by its name in lower case; empty when there is none.
    pub(crate) fn header(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }
}

/// Answers a request by writing to the connection, which is closed after that.
type Answerer = Box<dyn Fn(Request, &mut dyn Write) -> Result<()> + Send>;

#[derive(Debug)]
pub(crate) struct Intake {
    /// The address it listens on.
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    is_over: AtomicBool,
    connections: AtomicUsize,
}

impl State {
    /// Accepts and counts connections until `is_over`.
    fn connections_of(&self, listener: &TcpListener) -> impl Iterator<Item = TcpStream> {
        let incoming = listener.incoming();
        let incoming = incoming.take_while(|_| !self.is_over.load(Ordering::Relaxed));
        incoming.filter_map(|stream| {
            self.connections.fetch_add(1, Ordering::Relaxed);
            stream.ok()
        })
    }

    /// Serves each connection in a thread of its own, until `is_over`.
    fn serve(
        &self,
        listener: &TcpListener,
        tls: Option<&Arc<ServerConfig>>,
        answer: &Mutex<Answerer>,
    ) {
        std::thread::scope(|scope| {
            for stream in self.connections_of(listener) {
                // A sender that closes its connection is not our failure.
                scope.spawn(move || take(stream, tls, answer).ok());
            }
        });
    }
}

impl Intake {
    /// Starts to take requests, by TLS if `tls` is given.
    pub(crate) fn start(tls: Option<Arc<ServerConfig>>, answer: Answerer) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = Arc::<State>::default();
        let own = Arc::clone(&state);
        let answer = Mutex::new(answer);
        let thread = std::thread::spawn(move || own.serve(&listener, tls.as_ref(), &answer));
        Ok(Self {
            address,
            state,
            thread: Some(thread),
        })
    }

    /// Returns how many connections were accepted, with any outcome.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts, which then sees `is_over`.
        TcpStream::connect(self.address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn take(
    stream: TcpStream,
    tls: Option<&Arc<ServerConfig>>,
    answer: &Mutex<Answerer>,
) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let answer = |request: Request, to: &mut dyn Write| {
        let answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer(request, to)
    };
    let Some(tls) = tls else {
        return read(&stream).and_then(|request| answer(request, &mut &stream));
    };
    let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(tls))?, stream);
    let answered = answer(read(&mut stream)?, &mut stream);
    stream.conn.send_close_notify();
    stream.flush()?;
    answered
}

fn read(stream: impl Read) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut request = Request {
        path: first.split(' ').nth(1).unwrap_or_default().to_owned(),
        ..Request::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let header = (name.to_ascii_lowercase(), value.trim().to_owned());
        request.headers.push(header);
    }
    let length = request.header("content-length");
    let length: usize = length.parse().context("an odd length")?;
    anyhow::ensure!(length <= BODY_BYTES_MAX, "a body of {length} bytes");
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    Ok(request)
}
