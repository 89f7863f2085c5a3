//! Readings of the store that callers share (single flight): strangers who ask for what does not
//! exist cost one statement at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::ledger::ReadError;

/// Readings of one thing. A caller takes one that began after its call.
#[derive(Default)]
pub(crate) struct SharedReading {
    /// How many have begun.
    begun: AtomicU64,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    number: u64,
    failure: Option<ReadError>,
}

impl SharedReading {
    /// Waits for a reading that began after the call: that of another caller, or else `read`. Its failure is
    /// shared as well, or callers would wait for a silent store one after the other.
    ///
    /// # Errors
    /// Those of the reading.
    ///
    /// # Cancel safety
    /// Dropped, the next caller reads for itself.
    pub(crate) async fn share(
        &self,
        read: impl Future<Output = Result<(), ReadError>>,
    ) -> Result<(), ReadError> {
        let begun = self.begun.load(Ordering::Acquire);
        let mut last = self.last.lock().await;
        if last.number <= begun {
            let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
            let failure = read.await.err();
            *last = Last { number, failure };
        }
        last.failure.clone().map_or(Ok(()), Err)
    }

    /// Waits for `read`, while no other reading is under way.
    pub(crate) async fn alone<T>(&self, read: impl Future<Output = T>) -> T {
        let _last = self.last.lock().await;
        read.await
    }
}
