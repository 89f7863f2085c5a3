//! A TCP proxy in front of a server that injects the faults of networks: it delays, loses the reply
//! of a request that ran, resets, discards in silence, cuts and heals. The test decides when, for
//! all traffic, for one connection, or for the next request that contains a text.

mod control;
mod link;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;

use control::Control;
use link::Link;

/// A fault of traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Every reply is delayed by this time.
    Delay(Duration),
    /// The request reaches the server; its reply is discarded, then the connection closes.
    DropReply,
    /// The connection is reset; the request does not reach the server.
    Reset,
    /// Bytes both ways are discarded in silence, never sent later; the connection stays open.
    HalfOpen,
    /// Nothing passes until the fault is gone; then everything does, as after a network partition.
    Cut,
    /// The server gets the request once more, on another connection, before the client gets its
    /// reply. For protocols whose requests need no session, such as that of Redis.
    Twice,
}

/// The proxy. Its connections and threads end with it.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    control: Arc<Control>,
    accepting: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// Starts a proxy for the server at `target`, without a fault.
    pub fn to(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let control = Arc::new(Control::default());
        let own = Arc::clone(&control);
        let accepting = std::thread::spawn(move || accept(&listener, target, &own));
        Ok(Self {
            address,
            control,
            accepting: Some(accepting),
        })
    }

    /// Returns the address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns `url` with the address of the server replaced by that of the proxy.
    pub fn url(&self, url: &str, server: SocketAddr) -> String {
        url.replace(&server.to_string(), &self.address.to_string())
    }

    /// Moves to another server, as an address does when a replica takes over: open connections end,
    /// new ones connect to `target`.
    pub fn retarget(&self, target: SocketAddr) {
        let mut state = self.control.state();
        state.target = Some(target);
        state.end_streams();
    }

    /// Sets the fault of all traffic from now on, also of open connections.
    pub fn set(&self, fault: Fault) {
        self.control.change(|state| state.all = fault);
    }

    /// Ends the faults of all traffic and of single connections, and forgets those still to come.
    pub fn heal(&self) {
        self.control.change(|state| {
            state.all = Fault::None;
            state.single.clear();
            state.to_come.clear();
        });
    }

    /// Sets the fault of one connection. Connections are numbered from 1 as they are accepted.
    pub fn set_for(&self, connection: usize, fault: Fault) {
        self.control.set_for(connection, fault);
    }

    /// Gives `fault` to the next request of any connection, and to its reply.
    pub fn next(&self, fault: Fault) {
        self.next_with("", fault);
    }

    /// Gives `fault` to the next request that contains `text`, and to its reply.
    pub fn next_with(&self, text: &str, fault: Fault) {
        self.control.state().to_come.push((text.into(), fault));
    }

    /// Counts the faults asked for by [`FaultProxy::next`] and [`FaultProxy::next_with`] that have not
    /// happened yet.
    pub fn to_come(&self) -> usize {
        self.control.state().to_come.len()
    }

    /// Returns how many connections were accepted so far.
    pub fn connections(&self) -> usize {
        self.control.state().connections
    }

    /// Counts the reads of client traffic that were passed to the server so far; a request that is
    /// not large is one read.
    pub fn requests(&self) -> usize {
        self.control.state().requests
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.control.change(|state| {
            state.closed = true;
            state.end_streams();
        });
        // Wakes the thread that accepts, which then sees `closed`.
        TcpStream::connect(self.address).ok();
        if let Some(accepting) = self.accepting.take() {
            accepting.join().ok();
        }
    }
}

/// Accepts connections until the proxy ends, then waits for those that are open.
fn accept(listener: &TcpListener, target: SocketAddr, control: &Arc<Control>) {
    let mut open: Vec<JoinHandle<()>> = Vec::new();
    for client in listener.incoming() {
        if control.state().closed {
            break;
        }
        let Ok(client) = client else { continue };
        let (number, target) = {
            let mut state = control.state();
            state.connections += 1;
            (state.connections, state.target.unwrap_or(target))
        };
        let control = Arc::clone(control);
        open.retain(|link| !link.is_finished());
        open.push(std::thread::spawn(move || {
            // A server that is down shows as a connection that closes at once.
            if let Ok(link) = Link::open(&control, number, client, target) {
                link.run();
            }
        }));
    }
    for link in open {
        link.join().ok();
    }
}
