//! The signals that end a server.

use std::future::pending;
use std::io::IsTerminal;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Settings;
use crate::lease::is_ignored;

/// The signals that end a server in order. They are caught before it prints its address.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Only where it means that the terminal is gone: to a service it says that files are to be read again.
    hangup: Option<Signal>,
}

impl Signals {
    pub(super) fn catch(settings: &Settings) -> std::io::Result<Self> {
        let mut hangup = None;
        if !is_ignored(SignalKind::hangup().as_raw_value())? {
            // Caught in any case: without that it ends the process at once.
            let caught = signal(SignalKind::hangup())?;
            let is_end = settings.tls.is_none() && std::io::stdin().is_terminal();
            hangup = is_end.then_some(caught);
        }
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
        })
    }

    /// Waits for the first of them.
    pub(super) async fn stop(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}
