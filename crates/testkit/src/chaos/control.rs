//! The switches of a proxy, shared by all of its connections.

use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::Fault;

#[derive(Debug, Default)]
pub(super) struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    all: Fault,
    single: BTreeMap<usize, Fault>,
    to_come: Vec<(Vec<u8>, Fault)>,
    connections: usize,
    requests: usize,
    closed: bool,
    /// Where new connections go; `None` until it is set.
    target: Option<SocketAddr>,
    /// Weak, so that a stream closes when its connection is done with it.
    open: Vec<Weak<TcpStream>>,
}

impl Control {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, fault: Fault) {
        self.state().all = fault;
        self.changed.notify_all();
    }

    pub(super) fn set_for(&self, connection: usize, fault: Fault) {
        self.state().single.insert(connection, fault);
        self.changed.notify_all();
    }

    pub(super) fn heal(&self) {
        let mut state = self.state();
        state.all = Fault::None;
        state.single.clear();
        state.to_come.clear();
        self.changed.notify_all();
    }

    pub(super) fn expect(&self, text: &str, fault: Fault) {
        self.state().to_come.push((text.into(), fault));
    }

    pub(super) fn to_come(&self) -> usize {
        self.state().to_come.len()
    }

    pub(super) fn count_connection(&self) -> usize {
        let mut state = self.state();
        state.connections += 1;
        state.connections
    }

    pub(super) fn connections(&self) -> usize {
        self.state().connections
    }

    pub(super) fn count_request(&self) {
        self.state().requests += 1;
    }

    pub(super) fn requests(&self) -> usize {
        self.state().requests
    }

    /// The lasting fault of a connection: its own, else that of all.
    pub(super) fn lasting(&self, connection: usize) -> Fault {
        let state = self.state();
        state.single.get(&connection).copied().unwrap_or(state.all)
    }

    /// Takes the fault that waits for such a request, if one does. A cut becomes one of the connection, which
    /// lasts until it is healed.
    pub(super) fn take(&self, connection: usize, request: &[u8]) -> Option<Fault> {
        let mut state = self.state();
        let waits = |(text, _): &(Vec<u8>, Fault)| {
            text.is_empty() || request.windows(text.len()).any(|part| part == text)
        };
        let at = state.to_come.iter().position(waits)?;
        let (_, fault) = state.to_come.remove(at);
        if fault == Fault::Cut {
            state.single.insert(connection, fault);
            return None;
        }
        Some(fault)
    }

    /// Waits while the connection is cut; false if the proxy ended meanwhile.
    pub(super) fn await_heal(&self, connection: usize) -> bool {
        let cut = |state: &mut State| {
            let fault = state.single.get(&connection).copied().unwrap_or(state.all);
            fault == Fault::Cut && !state.closed
        };
        let waited = self.changed.wait_while(self.state(), cut);
        !waited.unwrap_or_else(PoisonError::into_inner).closed
    }

    /// Waits for `span`, or until the proxy ends.
    pub(super) fn pause(&self, span: Duration) {
        let open = |state: &mut State| !state.closed;
        let waited = self.changed.wait_timeout_while(self.state(), span, open);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Keeps a stream to be closed at the end of the proxy; false if that has come.
    pub(super) fn keep(&self, stream: &Arc<TcpStream>) -> bool {
        let mut state = self.state();
        state.open.retain(|open| open.strong_count() > 0);
        state.open.push(Arc::downgrade(stream));
        !state.closed
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Ends the proxy: calls that wait or read return.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.end_streams();
        self.changed.notify_all();
    }

    /// Sends new connections there, and ends those that are open.
    pub(super) fn retarget(&self, target: SocketAddr) {
        let mut state = self.state();
        state.target = Some(target);
        state.end_streams();
    }

    pub(super) fn target(&self) -> Option<SocketAddr> {
        self.state().target
    }
}

impl State {
    fn end_streams(&mut self) {
        for stream in self.open.drain(..).filter_map(|open| open.upgrade()) {
            // Most are closed already.
            stream.shutdown(Shutdown::Both).ok();
        }
    }
}
