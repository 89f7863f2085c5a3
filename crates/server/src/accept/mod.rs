//! Accepts connections and serves a router on them, within bounds, until told to stop. It knows
//! nothing of routes; what a request may cost inside the router is the router's to bound.
//!
//! `axum::serve` is not used: it has no header timeout, no connection cap, no idle timeout and no
//! deadline for its drain, and it leaves Nagle's algorithm on.

mod activity;
mod connection;
mod settings;
mod socket;
mod streams;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use soldonce_lease::{Clock, SystemClock};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::settings::AcceptLimits;

use self::activity::Activity;
use self::connection::serve_connection;
use self::watch::Watch;
use crate::limits::{ACCEPT_BACKOFF_MS_MAX, ACCEPT_BACKOFF_MS_MIN};

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

/// Serves `router` on `listener` until `shutdown` is cancelled, then drains: accepts nothing more,
/// closes idle connections, lets requests in flight finish (HTTP/2: after GOAWAY) for at most
/// `limits.drain_ms`, and cuts what is left. Returns when every task it started has ended.
///
/// HTTP/1.1 and HTTP/2 with prior knowledge. Each request carries a [`Peer`] extension.
///
/// # Errors
/// None: a connection's error ends that connection. When `accept` itself fails (out of file
/// descriptors), it is tried again after a pause.
///
/// # Cancel safety
/// Dropping the future cuts every connection at once, requests in flight included.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: AcceptLimits,
    shutdown: CancellationToken,
) -> Drained {
    // With its state given, every handler becomes a route here, once, and not at each request.
    let mut loop_ = AcceptLoop::new(router.with_state(()), limits);
    loop_.accept_until(listener, &shutdown).await;
    loop_.drain().await
}

/// The owner of all connection tasks.
struct AcceptLoop {
    router: Router,
    limits: AcceptLimits,
    clock: SystemClock,
    tasks: JoinSet<Ended>,
    watch: Watch,
    ended: Drained,
}

/// How one connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Finished,
    Cut,
}

impl AcceptLoop {
    fn new(router: Router, limits: AcceptLimits) -> Self {
        Self {
            router,
            limits,
            clock: SystemClock,
            tasks: JoinSet::new(),
            watch: Watch::new(limits),
            ended: Drained::default(),
        }
    }

    /// Accepts while there is room. A full house accepts nothing: newcomers wait in the kernel.
    async fn accept_until(&mut self, listener: TcpListener, shutdown: &CancellationToken) {
        let mut backoff = Backoff::default();
        loop {
            let room = self.tasks.len() < self.limits.connections_max;
            let clock = self.clock;
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(task) = self.tasks.join_next_with_id() => self.note_end(task),
                () = clock.sleep_until(self.watch.next_at()), if self.watch.is_needed() => {
                    self.watch.look(clock.boot());
                }
                accepted = listener.accept(), if room => match accepted {
                    Ok((stream, peer)) => {
                        backoff = Backoff::default();
                        self.start(stream, peer);
                    }
                    Err(error) => {
                        let Some(pause) = backoff.after(&error) else { continue };
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

    fn start(&mut self, stream: TcpStream, peer: SocketAddr) {
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%peer, %error, "connection was gone before it began");
            return;
        }
        let activity = Arc::new(Activity::default());
        let served = serve_connection(
            stream,
            Peer(peer),
            self.router.clone(),
            Arc::clone(&activity),
        );
        let task = self.tasks.spawn(served);
        self.watch.add(task.id(), activity, self.clock.boot());
    }

    /// Waits for all connections, at most `drain_ms`, then cuts the others and joins them.
    async fn drain(mut self) -> Drained {
        self.watch.close_all();
        let clock = self.clock;
        let deadline = clock
            .boot()
            .plus(Duration::from_millis(self.limits.drain_ms));
        loop {
            tokio::select! {
                task = self.tasks.join_next_with_id() => match task {
                    Some(task) => self.note_end(task),
                    None => return self.ended,
                },
                () = clock.sleep_until(self.watch.next_at()) => self.watch.look(clock.boot()),
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
            Err(error) => (error.id(), &mut self.ended.panicked),
        };
        *count += 1;
        self.watch.remove(id);
    }
}

/// Turns Nagle's algorithm off: an answer must not wait for the acknowledgement of the one before.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)
}

/// How long to pause after `accept` failed.
#[derive(Default)]
struct Backoff {
    failures: u32,
}

impl Backoff {
    /// None if the error concerns only the one connection that was to be accepted. Any other is
    /// answered by a pause that doubles, so that a lasting failure never becomes a busy loop.
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
        let pause_ms = ACCEPT_BACKOFF_MS_MIN
            .saturating_mul(1_u64.checked_shl(self.failures).unwrap_or(u64::MAX))
            .min(ACCEPT_BACKOFF_MS_MAX);
        self.failures = self.failures.saturating_add(1);
        Some(Duration::from_millis(pause_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn accepted_sockets_have_nagle_off() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, _peer) = accepted.unwrap();
        drop(client);
        assert!(!stream.nodelay().unwrap(), "the kernel's default");
        prepare(&stream).unwrap();
        assert!(stream.nodelay().unwrap());
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
