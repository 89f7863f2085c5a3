//! Readings of the store that callers share (single flight): strangers who ask for what does not
//! exist cost one statement at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::ledger::ReadError;

/// Readings of one thing. A caller takes one that began after its call.
pub(crate) struct SharedReading {
    /// How many have begun.
    begun: AtomicU64,
    last: Mutex<Last>,
}

struct Last {
    number: u64,
    outcome: Result<(), ReadError>,
}

impl Default for SharedReading {
    fn default() -> Self {
        let last = Last {
            number: 0,
            outcome: Ok(()),
        };
        Self {
            begun: AtomicU64::new(0),
            last: Mutex::new(last),
        }
    }
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
            let outcome = read.await;
            *last = Last { number, outcome };
        }
        last.outcome.clone()
    }

    /// Waits for `read`, while no other reading is under way.
    pub(crate) async fn alone<T>(&self, read: impl Future<Output = T>) -> T {
        let _last = self.last.lock().await;
        read.await
    }
}
