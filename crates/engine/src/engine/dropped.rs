//! Events that are over are dropped: by staff, or by the server once they were kept for as long as its operator
//! wants. Their rows are deleted in the background, a few in each transaction.

use std::sync::Arc;

use soldonce_core::{EventId, EventUse, Origin, Rejection, Span, Timestamp};
use tokio_util::sync::CancellationToken;

use super::{Engine, EngineError};
use crate::ledger::AgeClock;
use crate::limits::{CLEAR_EVERY_MS, DROP_CLOCK_OFF_MS_MAX, DROP_EVERY_MS};
use crate::live::Listing;
use crate::pause::pause;
use crate::trouble::Trouble;

/// Deletes the rows of dropped events until `shutdown`, and drops events that have been over for `keep`.
///
/// # Cancel safety
/// Dropped between two steps it leaves nothing half done: the next run goes on.
pub async fn run_dropper(engine: Engine, keep: Option<Span>, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    let mut trouble = Trouble::default();
    let mut look_at = clock.boot();
    let ages = AgeClock::starting_at(engine.now(), &*clock);
    while pause(&*clock, &shutdown, CLEAR_EVERY_MS).await {
        let is_due = look_at <= clock.boot();
        if is_due {
            look_at = clock.boot().plus_ms(DROP_EVERY_MS);
        }
        if let Some(keep) = keep.filter(|_| is_due && engine.is_time_certain(ages)) {
            let dropping = engine.drop_ended(keep);
            if shutdown.run_until_cancelled(dropping).await.is_none() {
                return;
            }
        }
        match shutdown.run_until_cancelled(engine.clear_dropped()).await {
            None => return,
            Some(Ok(())) if trouble.ends() => {
                tracing::info!("rows of dropped events are deleted again");
            }
            Some(Err(error)) if trouble.lasts(clock.boot()) => {
                tracing::warn!(%error, "rows of dropped events cannot be deleted");
            }
            Some(Ok(()) | Err(_)) => {}
        }
    }
}

impl Engine {
    /// Tells whether the ledger's clock is ahead neither of `ages` nor of this machine's, but for
    /// [`DROP_CLOCK_OFF_MS_MAX`]. Otherwise a clock is wrong or was: an event that seems long over may
    /// be still to come.
    fn is_time_certain(&self, ages: AgeClock) -> bool {
        let now = self.now();
        let gained = ages.at(now, &*self.world().clock).until(now).ms();
        let gained = i64::try_from(gained).unwrap_or(i64::MAX);
        let off = gained.max(self.clock_ahead_ms());
        if off > DROP_CLOCK_OFF_MS_MAX {
            tracing::error!(
                ahead_ms = off,
                "no event is dropped: a clock is wrong, or has stepped since the start of this server"
            );
        }
        off <= DROP_CLOCK_OFF_MS_MAX
    }

    /// Drops an event that is over for `keep`; returns when. Its rows are deleted in the
    /// background.
    ///
    /// # Errors
    /// `EventNotFound`, `EventDropped`, `EventNotOver`, `EventInUse`.
    ///
    /// # Cancel safety
    /// Dropped, the event may be dropped: repeat, `EventDropped` says so.
    pub async fn drop_event(
        &self,
        event: &EventId,
        keep: Span,
        origin: Origin,
    ) -> Result<Timestamp, EngineError> {
        let no = self.live(event).await?.event().no;
        let request = Arc::clone(&origin.request);
        let dropped = self.parts.ledger.drop_event(no, keep, origin).await;
        if let Err(rejection) = &dropped {
            self.parts.metrics.refused(rejection);
        } else {
            tracing::info!(event = event.as_str(), %request, "dropped");
        }
        Ok(dropped?)
    }

    /// Deletes all rows of dropped events, some in each transaction.
    ///
    /// # Errors
    /// Those of the store, such as `ReadOnly`; rows deleted before it stay deleted.
    pub async fn clear_dropped(&self) -> Result<(), Rejection> {
        while self.parts.ledger.clear_dropped().await? {}
        Ok(())
    }

    /// Drops every event that has been over for `keep`. One that is still in use is looked at again later.
    async fn drop_ended(&self, keep: Span) {
        let nothing_open = EventUse {
            last_commit: Timestamp::MIN,
            open: 0,
        };
        for live in self.parts.live.page(Listing::All, None, usize::MAX) {
            let event = live.event();
            let over = event.require_droppable(self.now(), nothing_open, keep);
            if over.is_err() {
                continue;
            }
            let dropped = self.drop_event(&event.id, keep, Origin::system("keep_ended_events"));
            if let Err(error) = dropped.await {
                tracing::debug!(event = event.id.as_str(), %error, "not dropped yet");
            }
        }
    }
}
