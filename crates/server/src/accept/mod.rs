//! Accepts connections and serves a router on them, within bounds, until told to stop. It knows
//! nothing of routes; what a request may cost inside the router is the router's to bound.
//!
//! `axum::serve` is not used: it has no header timeout, no connection cap, no idle timeout and no
//! deadline for its drain, and it leaves Nagle's algorithm on.

mod activity;
mod connection;
mod counts;
mod host;
mod leftover;
mod progress;
mod settings;
mod shares;
mod socket;
mod streams;
mod watch;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::FutureExt;
#[cfg(target_os = "linux")]
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::task::coop::unconstrained;
use tokio_util::sync::CancellationToken;

pub use self::counts::ConnectionCounts;
pub use self::settings::{AcceptLimits, AcceptSettings};

use self::activity::Activity;
use self::connection::Connection;
use self::counts::{ADDRESS, ROOM};
use self::shares::{Load, Shares};
use self::streams::StreamTasks;
use self::watch::{Watch, Watched};
#[cfg(target_os = "linux")]
use crate::limits::UNACKNOWLEDGED_MS_MAX;
use crate::limits::{ACCEPT_BACKOFF_MS_MAX, ACCEPT_BACKOFF_MS_MIN, LISTEN_BACKLOG};
use crate::rate::network;
use crate::throttle::Throttle;

/// The address at the other end of the connection, as an extension of every request. Behind a proxy
/// it is the proxy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// How serving ended. Every accepted connection is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections that ended by themselves, were idle for too long, or finished their request
    /// during the drain.
    pub finished: u64,
    /// Connections cut: head too slow, answer not read, or still busy at the end of the drain.
    pub cut: u64,
    /// Connections lost to a panic in a handler.
    pub panicked: u64,
}

impl Drained {
    /// Counts the connections of another listener too.
    pub fn add(&mut self, other: Self) {
        self.finished = self.finished.saturating_add(other.finished);
        self.cut = self.cut.saturating_add(other.cut);
        self.panicked = self.panicked.saturating_add(other.panicked);
    }
}

/// Listens on an address, with a queue that takes a crowd which comes all at once.
///
/// # Errors
/// When none of the host's addresses can be listened on.
///
/// # Cancel safety
/// Dropped, nothing listens.
pub async fn listen(address: &str) -> io::Result<TcpListener> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in lookup_host(address).await? {
        match listen_on(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(LISTEN_BACKLOG)
}

/// Serves `router` on `listener` until `shutdown` is cancelled, then drains: accepts nothing more,
/// closes idle connections, lets requests in flight finish (HTTP/2: after GOAWAY) for at most
/// `limits.drain_ms`, and cuts what is left. Returns when every task it started has ended.
///
/// HTTP/1.1 and HTTP/2, by TLS if the settings say so: then as the client chooses by ALPN, else with prior
/// knowledge. Each request carries a [`Peer`] extension.
///
/// # Errors
/// None: a connection's error ends that connection. When `accept` itself fails (out of file
/// descriptors), the connection that is idle for longest ends, and it is tried again after a pause.
///
/// # Cancel safety
/// Dropping the future cuts every connection at once, requests in flight included.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: impl Into<AcceptSettings>,
    shutdown: CancellationToken,
) -> Drained {
    // With its state given, every handler becomes a route here, once, and not at each request.
    let mut loop_ = AcceptLoop::new(router.with_state(()), settings.into());
    loop_.accept_until(listener, &shutdown).await;
    loop_.drain().await
}

/// The owner of all connection tasks.
struct AcceptLoop {
    router: Router,
    settings: AcceptSettings,
    tasks: JoinSet<Ended>,
    watch: Watch,
    load: Arc<Load>,
    /// A connection that was accepted and waits for the end of another one.
    waiting: Option<(TcpStream, SocketAddr)>,
    refused: Throttle,
    full: Throttle,
    ended: Drained,
}

/// How one connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Finished,
    Cut,
}

impl AcceptLoop {
    fn new(router: Router, settings: AcceptSettings) -> Self {
        Self {
            router,
            tasks: JoinSet::new(),
            watch: Watch::new(settings.limits),
            settings,
            load: Arc::new(Load::of_all()),
            waiting: None,
            refused: Throttle::default(),
            full: Throttle::default(),
            ended: Drained::default(),
        }
    }

    /// Accepts while there is room, and one more, for which an idle connection ends.
    async fn accept_until(&mut self, listener: TcpListener, shutdown: &CancellationToken) {
        let mut backoff = Backoff::default();
        let clock = Arc::clone(&self.settings.clock);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(task) = self.tasks.join_next_with_id() => {
                    self.note_end(task);
                    self.start_waiting();
                }
                () = clock.sleep_until(self.watch.next_at), if self.watch.is_needed() => {
                    self.watch.look(clock.boot());
                    self.start_waiting();
                }
                accepted = listener.accept(), if self.waiting.is_none() => match accepted {
                    Ok(accepted) => {
                        backoff = Backoff::default();
                        self.take(accepted);
                        self.take_queued(&listener);
                    }
                    Err(error) => {
                        let Some(pause) = backoff.after(&error) else { continue };
                        self.watch.end_longest_idle(clock.boot());
                        tracing::warn!(%error, ?pause, "cannot accept connections, pausing");
                        tokio::select! {
                            () = shutdown.cancelled() => return,
                            () = clock.sleep_until(clock.boot().plus(pause)) => {}
                        }
                    }
                }
            }
        }
    }

    /// Takes those that wait in the kernel's queue, before any of the work that they bring: while it is full, others
    /// are answered a second late. Not stopped by tokio's budget of a turn, which a crowd exceeds.
    fn take_queued(&mut self, listener: &TcpListener) {
        for _ in 0..LISTEN_BACKLOG {
            if self.waiting.is_some() {
                return;
            }
            let Some(Ok(accepted)) = unconstrained(listener.accept()).now_or_never() else {
                return;
            };
            self.take(accepted);
        }
    }

    /// Takes a new connection, unless its address has as many as it may.
    fn take(&mut self, accepted: (TcpStream, SocketAddr)) {
        let address = self.counted_address(accepted.1.ip());
        let most = self.settings.limits.connections_per_address_max;
        if address.is_some_and(|address| self.watch.of_address(address) >= most) {
            self.settings.counts.closed_early(&ADDRESS);
            if let Some(left_out) = self.refused.pass(self.settings.clock.boot()) {
                let peer = accepted.1.ip();
                tracing::warn!(%peer, left_out, "this address has as many connections as it may");
            }
            return;
        }
        self.waiting = Some(accepted);
        self.start_waiting();
        if self.waiting.is_some()
            && let Some(left_out) = self.full.pass(self.settings.clock.boot())
        {
            let connections = self.tasks.len();
            tracing::warn!(
                connections,
                left_out,
                "all connections are taken: the next waits for room"
            );
        }
    }

    /// Starts the connection that waits if there is room, else ends an idle one for it.
    fn start_waiting(&mut self) {
        let Some((stream, peer)) = self.waiting.take() else {
            return;
        };
        if self.tasks.len() < self.settings.limits.connections_max {
            self.start(stream, peer);
        } else {
            if self.watch.end_longest_idle(self.settings.clock.boot()) {
                self.settings.counts.closed_early(&ROOM);
            }
            self.waiting = Some((stream, peer));
        }
    }

    fn start(&mut self, stream: TcpStream, peer: SocketAddr) {
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%peer, %error, "connection was gone before it began");
            return;
        }
        let activity = Arc::new(Activity::default());
        let streams = StreamTasks::default();
        let address = self.counted_address(peer.ip());
        let load = address.map(|address| self.watch.load_of(address));
        let connection = Connection {
            peer: Peer(peer),
            router: self.router.clone(),
            clock: Arc::clone(&self.settings.clock),
            activity: Arc::clone(&activity),
            streams: streams.clone(),
            shares: Arc::new(Shares {
                all: Arc::clone(&self.load),
                address: load,
            }),
            tls: self.settings.tls.as_ref().map(|tls| tls.acceptor().clone()),
        };
        self.settings.counts.open.inc();
        let task = self.tasks.spawn(connection.serve(stream));
        let now = self.settings.clock.boot();
        let watched = Watched::new(activity, streams, address, now);
        self.watch.add(task.id(), watched);
    }

    /// Returns the address that the connection counts for; None for a trusted proxy's.
    fn counted_address(&self, peer: IpAddr) -> Option<IpAddr> {
        let mut trusted = self.settings.trusted_proxies.iter();
        (!trusted.any(|network| network.contains(peer))).then(|| network(peer))
    }

    /// Waits for all connections, at most `drain_ms`, then cuts the others and joins them.
    async fn drain(mut self) -> Drained {
        self.watch.close_all();
        self.waiting = None;
        let clock = Arc::clone(&self.settings.clock);
        let deadline = clock.boot().plus_ms(self.settings.limits.drain_ms);
        loop {
            tokio::select! {
                task = self.tasks.join_next_with_id() => match task {
                    Some(task) => self.note_end(task),
                    None => return self.ended,
                },
                () = clock.sleep_until(self.watch.next_at) => self.watch.look(clock.boot()),
                () = clock.sleep_until(deadline) => break,
            }
        }
        tracing::warn!(
            connections = self.tasks.len(),
            "drain took too long, cutting the rest"
        );
        self.watch.cut_all();
        while let Some(task) = self.tasks.join_next_with_id().await {
            self.note_end(task);
        }
        self.ended
    }

    fn note_end(&mut self, task: Result<(tokio::task::Id, Ended), tokio::task::JoinError>) {
        let (id, count) = match task {
            Ok((id, Ended::Finished)) => (id, &mut self.ended.finished),
            Ok((id, Ended::Cut)) => (id, &mut self.ended.cut),
            Err(error) => {
                tracing::error!(%error, "a connection was lost to a panic");
                (error.id(), &mut self.ended.panicked)
            }
        };
        *count += 1;
        self.settings.counts.open.dec();
        self.watch.remove(id);
    }
}

/// Turns Nagle's algorithm off: an answer must not wait for the acknowledgement of the one before. Ends the
/// connection of a peer that is gone without a word: a quiet feed would wait a quarter of an hour for it
/// (RFC 5482).
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    set_tcp_user_timeout(stream, UNACKNOWLEDGED_MS_MAX)?;
    Ok(())
}

/// How long to pause after `accept` failed.
#[derive(Default)]
struct Backoff {
    next_ms: u64,
}

impl Backoff {
    /// Returns the next pause, or None if the error concerns only the one connection that was to be
    /// accepted. The pause doubles, so that a lasting failure never becomes a busy loop.
    fn after(&mut self, error: &io::Error) -> Option<Duration> {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
        let one_connection = [
            ConnectionAborted,
            ConnectionRefused,
            ConnectionReset,
            Interrupted,
        ];
        if one_connection.contains(&error.kind()) {
            return None;
        }
        let pause_ms = self.next_ms.max(ACCEPT_BACKOFF_MS_MIN);
        self.next_ms = (2 * pause_ms).min(ACCEPT_BACKOFF_MS_MAX);
        Some(Duration::from_millis(pause_ms))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;

    use super::*;

    /// What tokio lets a task do in one turn.
    const BUDGET: i64 = 128;
    /// Fewer than one address may have.
    const QUEUED: i64 = 200;

    #[tokio::test]
    async fn accepted_sockets_neither_wait_to_send_nor_for_a_peer_that_is_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, _peer) = accepted.unwrap();
        drop(client);
        assert!(!stream.nodelay().unwrap(), "the kernel's default");
        prepare(&stream).unwrap();
        assert!(stream.nodelay().unwrap());
        #[cfg(target_os = "linux")]
        assert_eq!(
            rustix::net::sockopt::tcp_user_timeout(&stream).unwrap(),
            UNACKNOWLEDGED_MS_MAX
        );
    }

    #[tokio::test]
    async fn a_queue_beyond_tokios_budget_is_taken_in_one_turn() {
        let listener = listen("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let crowd: Vec<_> = (0..QUEUED)
            .map(|_| std::net::TcpStream::connect(address).unwrap())
            .collect();
        let settings = AcceptSettings::from(AcceptLimits::default());
        let open = settings.counts.open.clone();
        let shutdown = CancellationToken::new();
        let mut accepting = pin!(serve(listener, Router::new(), settings, shutdown));
        while open.get() == 0 {
            assert!(poll!(accepting.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        // The kernel may be late with the last of them.
        let taken = open.get();
        assert!(taken > BUDGET, "{taken} of {QUEUED}");
        drop(crowd);
    }

    #[test]
    fn running_out_of_descriptors_pauses_longer_and_longer_within_a_bound() {
        let mut backoff = Backoff::default();
        let full = io::Error::from_raw_os_error(24); // EMFILE
        let pauses: Vec<_> = (0..70).filter_map(|_| backoff.after(&full)).collect();
        assert_eq!(pauses[0], Duration::from_millis(ACCEPT_BACKOFF_MS_MIN));
        assert_eq!(pauses[1], Duration::from_millis(2 * ACCEPT_BACKOFF_MS_MIN));
        assert_eq!(pauses[69], Duration::from_millis(ACCEPT_BACKOFF_MS_MAX));
    }

    #[test]
    fn a_peer_that_gave_up_pauses_nothing() {
        let gone = io::Error::from(io::ErrorKind::ConnectionAborted);
        assert_eq!(Backoff::default().after(&gone), None);
    }
}
