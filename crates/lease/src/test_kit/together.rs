//! A batch of acquires on a backend that fails: each has its own fault, and those that arrive go on
//! together.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::faulty::{Buffered, Fault, FaultyBackend, Op, not_sent, unknown};
use crate::backend::{Acquire, AcquireReply, Answers, Fut, all};

/// An answer, or `None` if the acquire was given back.
type Word = Option<AcquireReply>;

/// What becomes of the word on one acquire.
enum Way {
    Told,
    Lost,
    /// It is kept back for whoever holds the other end.
    Kept(Mutex<Option<oneshot::Sender<Word>>>),
}

/// An acquire that arrives: its place in the batch as it was asked for.
struct Arrived {
    index: usize,
    way: Way,
}

/// Stands between the backend that serves a batch and whoever asked.
struct Between {
    to: Arc<dyn Answers>,
    arrived: Vec<Arrived>,
}

impl FaultyBackend {
    pub(super) async fn acquire_together(&self, batch: Vec<Acquire>, to: Arc<dyn Answers>) {
        for _ in &batch {
            self.count(Op::Acquire);
        }
        self.wait_out_a_pause().await;
        let inner = self.inner();
        let mut commands = Vec::with_capacity(batch.len());
        let mut arrived = Vec::with_capacity(batch.len());
        let mut late: Vec<Fut<'_, ()>> = Vec::new();
        for (index, command) in batch.into_iter().enumerate() {
            let way = match self.fault(Op::Acquire) {
                None => Way::Told,
                Some(Fault::LoseReply) => Way::Lost,
                Some(Fault::LoseRequest) => {
                    to.answer(index, AcquireReply::Failed(unknown()));
                    continue;
                }
                Some(Fault::NotSent) => {
                    to.answer(index, AcquireReply::Failed(not_sent()));
                    continue;
                }
                Some(Fault::Buffer) => {
                    self.buffer(Buffered::Acquire(command));
                    to.answer(index, AcquireReply::Failed(unknown()));
                    continue;
                }
                Some(fault @ (Fault::DelayReply(_) | Fault::Double)) => {
                    let (keep, word) = oneshot::channel();
                    let whose = (command.clone(), Arc::clone(&to), index);
                    late.push(Box::pin(self.tell_late(fault, word, whose)));
                    Way::Kept(Mutex::new(Some(keep)))
                }
            };
            commands.push(command);
            arrived.push(Arrived { index, way });
        }
        late.push(inner.acquire_each(commands, Arc::new(Between { to, arrived })));
        all(late.into_iter()).await;
    }

    /// Tells the word on an acquire that ran once after what `fault` does to it.
    async fn tell_late(
        &self,
        fault: Fault,
        word: oneshot::Receiver<Word>,
        (command, to, index): (Acquire, Arc<dyn Answers>, usize),
    ) {
        // Without a word there is nothing to tell.
        let Ok(mut word) = word.await else { return };
        match fault {
            Fault::DelayReply(span) => self.sleep(span).await,
            Fault::Double => word = Some(self.inner().acquire(&command).await),
            Fault::LoseRequest | Fault::LoseReply | Fault::NotSent | Fault::Buffer => {}
        }
        tell(&*to, index, word);
    }
}

impl Between {
    fn take(&self, index: usize, word: Word) {
        let Some(Arrived { index, way }) = self.arrived.get(index) else {
            return;
        };
        match way {
            Way::Told => tell(&*self.to, *index, word),
            Way::Lost => self.to.answer(*index, AcquireReply::Failed(unknown())),
            Way::Kept(keep) => {
                let keep = keep.lock().unwrap_or_else(PoisonError::into_inner).take();
                // Fails when the whole call was dropped.
                keep.map(|keep| keep.send(word));
            }
        }
    }

    fn place(&self, index: usize) -> usize {
        let arrived = self.arrived.get(index);
        // A place that nobody asked for is one that nobody waits for either.
        arrived.map_or(usize::MAX, |arrived| arrived.index)
    }
}

impl Answers for Between {
    fn is_awaited(&self, index: usize) -> bool {
        self.to.is_awaited(self.place(index))
    }

    fn poll_gone(&self, index: usize, cx: &mut Context<'_>) -> Poll<()> {
        self.to.poll_gone(self.place(index), cx)
    }

    fn scope(&self, index: usize, work: &mut dyn FnMut()) {
        self.to.scope(self.place(index), work);
    }

    fn answer(&self, index: usize, reply: AcquireReply) {
        self.take(index, Some(reply));
    }

    fn give_back(&self, index: usize) {
        self.take(index, None);
    }
}

fn tell(to: &dyn Answers, index: usize, word: Word) {
    match word {
        Some(reply) => to.answer(index, reply),
        None => to.give_back(index),
    }
}
