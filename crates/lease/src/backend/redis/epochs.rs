//! Epochs for the fence records: drawn after a record asked for one, shared by the records that
//! asked before it was drawn. `lease.md` 4.3, `docs/decisions/0007`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::fence::next_epoch;
use crate::{FenceError, FenceSource, FencingToken, Namespace};

/// Epochs from here on are of a clock, since the year 1996. `scripts/install.lua` has it, too.
const CLOCK_EPOCHS: u32 = 400_000;

pub(super) struct Epochs {
    source: Option<Arc<dyn FenceSource>>,
    namespace: Namespace,
    /// How many draws have begun.
    begun: AtomicU64,
    /// The last draw. The lock is held across the wait, so that there is one draw at a time.
    last: Mutex<Draw>,
}

#[derive(Clone, Copy, Default)]
struct Draw {
    /// Its number among the draws of this process, from 1.
    number: u64,
    epoch: u32,
}

impl Epochs {
    pub(super) fn new(source: Option<Arc<dyn FenceSource>>, namespace: Namespace) -> Self {
        Self {
            source,
            namespace,
            begun: AtomicU64::new(0),
            last: Mutex::default(),
        }
    }

    /// Returns the lowest token an acquire may get: with a source, one that has an epoch.
    pub(super) fn floor(&self) -> Option<FencingToken> {
        let lowest = FencingToken::from_parts(1, 0);
        lowest.filter(|_| self.source.is_some())
    }

    /// Returns an epoch above `above` whose draw began after this call, for a record that has just
    /// asked: all that it ever granted is lower, because its epoch was drawn before. Without a
    /// source it is 0, which binds the record to the server and lets it continue from the server's
    /// clock.
    pub(super) async fn above(&self, above: u32) -> Result<u32, FenceError> {
        let Some(source) = &self.source else {
            return Ok(0);
        };
        let begun = self.begun.load(Ordering::Relaxed);
        // Replies arrive in bursts: all who have theirs by now come here before the draw begins.
        tokio::task::yield_now().await;
        let mut last = self.last.lock().await;
        if last.number > begun && last.epoch > above {
            return Ok(last.epoch);
        }
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let above = above.max(last.epoch);
        let epoch = next_epoch(&**source, self.namespace.as_str(), above).await?;
        *last = Draw { number, epoch };
        Ok(epoch)
    }

    /// Checks that a record whose epoch is `current` after an install can serve this process.
    pub(super) fn accepts(&self, current: u32) -> Result<(), FenceError> {
        if self.source.is_none() && (1..CLOCK_EPOCHS).contains(&current) {
            let why = "this namespace has a fence source, and this process has none";
            return Err(FenceError::Unavailable(why.to_owned()));
        }
        Ok(())
    }
}
