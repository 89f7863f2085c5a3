//! One connection's part of a load: take an arrival, send, read, count.

use std::io;
use std::sync::Arc;

use soldonce_clock::{Clock, SystemClock};
use tokio_util::sync::CancellationToken;

use super::alarm::Alarm;
use super::arrivals::Arrivals;
use super::connection::Connection;
use super::report::{LoadError, Tally};
use super::request::{RequestMaker, Turn};
use crate::limits::CONNECT_FAILURES_MAX;

/// One connection with what it sends and what it counted.
pub(crate) struct Worker {
    connection: Connection,
    maker: Box<dyn RequestMaker>,
    arrivals: Arc<Arrivals>,
    alarm: Alarm,
    tally: Tally,
}

impl Worker {
    /// # Errors
    /// When there is no timer to be had.
    pub(crate) fn new(
        connection: Connection,
        maker: Box<dyn RequestMaker>,
        arrivals: Arc<Arrivals>,
    ) -> io::Result<Self> {
        Ok(Self {
            connection,
            maker,
            arrivals,
            alarm: Alarm::new()?,
            tally: Tally::new(),
        })
    }

    /// Works until the load is over, or until `overtime` ends what is still unanswered.
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
        while let Some(planned) = self.arrivals.take(now) {
            if planned > now && self.alarm.wait_until(planned).await.is_err() {
                return;
            }
            let turn = Turn {
                request,
                last: self.connection.last(),
            };
            let Some(bytes) = self.maker.next(turn) else {
                return;
            };
            self.tally.count_sent();
            request += 1;
            let answered = self.connection.exchange(bytes).await;
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
