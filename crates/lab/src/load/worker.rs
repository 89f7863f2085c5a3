//! One connection of a load: takes an arrival, sends, reads, counts.

use std::io;
use std::sync::Arc;

use soldonce_clock::{Clock, SystemClock};
use tokio_util::sync::CancellationToken;

use super::alarm::Alarm;
use super::connection::Connection;
use super::plan::Arrivals;
use super::request::{Maker, Turn};
use crate::kit::{LoadError, Tally};
use crate::limits::CONNECT_FAILURES_MAX;

/// One connection with its requests and its counts.
pub(crate) struct Worker {
    connection: Connection,
    maker: Maker,
    arrivals: Arc<Arrivals>,
    alarm: Alarm,
    tally: Tally,
}

impl Worker {
    pub(crate) fn new(
        connection: Connection,
        maker: Maker,
        arrivals: Arc<Arrivals>,
    ) -> io::Result<Self> {
        Ok(Self {
            connection,
            maker,
            arrivals,
            alarm: Alarm::new()?,
            tally: Tally::default(),
        })
    }

    /// Sends until the load is over, or until `overtime` ends the wait for answers.
    ///
    /// # Cancel safety
    /// Dropped, its counts are lost: cancel `overtime` instead.
    pub(crate) async fn run(mut self, overtime: CancellationToken) -> Tally {
        tokio::select! {
            biased;
            () = self.work() => {}
            () = overtime.cancelled() => {}
        }
        self.tally.count_unanswered();
        self.tally
    }

    async fn work(&mut self) {
        let clock = SystemClock;
        let mut now = clock.boot();
        let mut connect_failures = 0;
        let mut request = 0;
        let mut buffer = Vec::new();
        while let Some(planned) = self.arrivals.take(now) {
            if planned > now && self.alarm.wait_until(planned).await.is_err() {
                return;
            }
            let turn = Turn {
                request,
                last: self.connection.last(),
            };
            buffer.clear();
            if !(self.maker)(turn, &mut buffer) {
                return;
            }
            self.tally.count_sent();
            request += 1;
            let answered = self.connection.exchange(&mut buffer).await;
            now = clock.boot();
            match answered {
                Ok(status) => self.tally.count_answer(status, now.since(planned)),
                Err(error) => self.tally.count_error(error),
            }
            connect_failures = if answered == Err(LoadError::Connect) {
                connect_failures + 1
            } else {
                0
            };
            if connect_failures >= CONNECT_FAILURES_MAX {
                return;
            }
        }
    }
}
