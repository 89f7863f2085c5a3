//! Reads rows on one thread and consumes them on another: a start decodes the next holds while it
//! puts the last ones into memory.

use std::sync::mpsc::{SyncSender, sync_channel};

use super::OpenError;
use super::fault::Fault;

/// How many items are sent at once.
const CHUNK: usize = 1_024;
/// How many chunks may wait before the reader does.
const CHUNKS_WAITING: usize = 4;

/// The sending side, which the reader fills.
pub(super) struct Chunks<T> {
    chunk: Vec<T>,
    send: SyncSender<Vec<T>>,
}

impl<T> Chunks<T> {
    /// Adds an item, and sends the chunk when it is full; blocks while [`CHUNKS_WAITING`] wait.
    ///
    /// # Errors
    /// When the receiver is gone: it has a fault to report.
    pub(super) fn push(&mut self, thing: T) -> Result<(), Fault> {
        self.chunk.push(thing);
        if self.chunk.len() < CHUNK {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        let given_up = |_| Fault::damaged("ledger", "its reading was given up");
        self.send.send(full).map_err(given_up)
    }

    fn finish(self) {
        // No receiver: then there is a fault already.
        self.send.send(self.chunk).unwrap_or_default();
    }
}

/// Runs `read` on a thread of its own, and passes each item to `take` on this one, in order.
///
/// # Errors
/// The fault of `take`, else that of `read`.
pub(super) fn read_ahead<T: Send>(
    read: impl FnOnce(&mut Chunks<T>) -> Result<(), OpenError> + Send,
    mut take: impl FnMut(T) -> Result<(), Fault>,
) -> Result<(), OpenError> {
    let (send, taken) = sync_channel(CHUNKS_WAITING);
    let mut chunks = Chunks {
        chunk: Vec::with_capacity(CHUNK),
        send,
    };
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            read(&mut chunks)?;
            chunks.finish();
            Ok(())
        });
        let took = taken.iter().flatten().try_for_each(&mut take);
        drop(taken);
        let lost = |_| OpenError::Failed("the reading panicked".to_owned());
        let read = reading.join().map_err(lost)?;
        took?;
        read
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_in_order_and_a_fault_on_either_side_ends_it() {
        for count in [0, 1, CHUNK, 20 * CHUNK + 1] {
            let mut taken = Vec::new();
            let read = |chunks: &mut Chunks<usize>| {
                (0..count).try_for_each(|n| chunks.push(n))?;
                Ok(())
            };
            let take = |n| {
                taken.push(n);
                Ok(())
            };
            read_ahead(read, take).unwrap();
            assert!(taken.into_iter().eq(0..count));
        }
        let endless = |chunks: &mut Chunks<usize>| loop {
            chunks.push(1)?;
        };
        let refuse = |_| Err(Fault::damaged("holds", "refused"));
        let error = read_ahead(endless, refuse).expect_err("it was refused");
        assert!(error.to_string().contains("refused"), "{error}");
        let fails = |_: &mut Chunks<usize>| Err(OpenError::Failed("unreadable".to_owned()));
        let error = read_ahead(fails, |_| Ok(())).expect_err("it was unreadable");
        assert!(error.to_string().contains("unreadable"), "{error}");
    }
}
