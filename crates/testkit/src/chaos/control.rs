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
pub(super) struct State {
    pub(super) all: Fault,
    pub(super) single: BTreeMap<usize, Fault>,
    pub(super) to_come: Vec<(Vec<u8>, Fault)>,
    pub(super) connections: usize,
    pub(super) requests: usize,
    pub(super) closed: bool,
    /// The server of new connections; `None` until [`super::FaultProxy::retarget`] sets it.
    pub(super) target: Option<SocketAddr>,
    /// Streams to shut down at the end. Weak, so that one closes when its connection drops it.
    open: Vec<Weak<TcpStream>>,
}

impl Control {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the faults, and wakes the connections that wait for a change.
    pub(super) fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.state());
        self.changed.notify_all();
    }

    pub(super) fn set_for(&self, connection: usize, fault: Fault) {
        self.change(|state| {
            state.single.insert(connection, fault);
        });
    }

    /// Returns the lasting fault of a connection: its own, else that of all traffic.
    pub(super) fn lasting(&self, connection: usize) -> Fault {
        let state = self.state();
        state.single.get(&connection).copied().unwrap_or(state.all)
    }

    /// Takes the fault that was asked for this request, if there is one. A cut becomes one of the
    /// connection, which lasts until it is healed.
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

    /// Waits while the connection is cut. Returns false if the proxy ended meanwhile.
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

    /// Registers a stream to be shut down when the proxy ends. Returns false if it has ended.
    pub(super) fn keep(&self, stream: &Arc<TcpStream>) -> bool {
        let mut state = self.state();
        state.open.retain(|open| open.strong_count() > 0);
        state.open.push(Arc::downgrade(stream));
        !state.closed
    }
}

impl State {
    pub(super) fn end_streams(&mut self) {
        for stream in self.open.drain(..).filter_map(|open| open.upgrade()) {
            // Most are closed already.
            stream.shutdown(Shutdown::Both).ok();
        }
    }
}
