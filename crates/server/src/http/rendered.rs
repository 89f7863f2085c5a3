//! Large answers that many readers ask for at once: written once per commit number, shared, and
//! forgotten when they are too many.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soldonce_clock::{BootTime, Clock};
use soldonce_core::{EventId, Seq};
use soldonce_engine::live::Digest;
use tokio::task::spawn_blocking;

use super::coding::{Coding, OpenBody};
use super::problem::Problem;
use crate::limits::{
    INLINE_RENDER_SEATS_MAX, RENDER_PAUSE_MS_MAX, RENDER_PAUSE_TIMES, RENDERED_BYTES_MAX,
};
use crate::lock;

/// An answer, and the commit number it shows.
#[derive(Clone, Debug)]
pub(super) struct Rendering {
    pub(super) seq: Seq,
    pub(super) digest: Digest,
    pub(super) body: OpenBody,
}

/// Which answer is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BodyKey {
    pub(super) event: EventId,
    pub(super) coding: Coding,
}

/// The newest answer of each event in each coding. One reader writes it, those who come meanwhile wait for it.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    entries: Arc<Mutex<Entries>>,
}

#[derive(Debug, Default)]
struct Entries {
    by_wish: BTreeMap<BodyKey, Entry>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug, Default)]
struct Entry {
    slot: Arc<Slot>,
    bytes: usize,
    used: u64,
}

type Slot = tokio::sync::Mutex<Option<RenderedBody>>;

#[derive(Debug)]
struct RenderedBody {
    rendering: Rendering,
    /// No newer one is written before.
    next_at: BootTime,
}

impl Rendered {
    /// Returns the answer of an event at `at_least` this commit number. `newest` gives the number
    /// of its units and what writes the newest one, unless another request just did. Soon after one
    /// was written the next one waits, so that it serves all who came meanwhile.
    ///
    /// # Cancel safety
    /// Dropped, a large one that is being written is kept all the same, and the next one waits for its turn.
    pub(super) async fn get<W>(
        &self,
        clock: &Arc<dyn Clock>,
        wanted: &BodyKey,
        at_least: Seq,
        newest: impl AsyncFnOnce() -> Result<(u32, W), Problem>,
    ) -> Result<Rendering, Problem>
    where
        W: FnOnce() -> Rendering + Send + 'static,
    {
        let mut latest = self.slot(wanted).lock_owned().await;
        if let Some(known) = &*latest {
            if known.rendering.seq >= at_least {
                return Ok(known.rendering.clone());
            }
            clock.sleep_until(known.next_at).await;
        }
        let (units, write) = newest().await?;
        let (clock, entries, wanted) =
            (Arc::clone(clock), Arc::clone(&self.entries), wanted.clone());
        let write = move || {
            let began = clock.boot();
            let rendering = write();
            let now = clock.boot();
            let pause = now.since(began).saturating_mul(RENDER_PAUSE_TIMES);
            *latest = Some(RenderedBody {
                rendering: rendering.clone(),
                next_at: now.plus(pause.min(Duration::from_millis(RENDER_PAUSE_MS_MAX))),
            });
            lock(&entries).note(&wanted, rendering.body.bytes.len());
            rendering
        };
        if units <= INLINE_RENDER_SEATS_MAX {
            return Ok(write());
        }
        // Away from the threads that serve connections.
        let written = spawn_blocking(write).await;
        written.map_err(|error| Problem::internal(&error))
    }

    fn slot(&self, wanted: &BodyKey) -> Arc<Slot> {
        let mut entries = lock(&self.entries);
        entries.uses = entries.uses.saturating_add(1);
        let uses = entries.uses;
        if let Some(entry) = entries.by_wish.get_mut(wanted) {
            entry.used = uses;
            return Arc::clone(&entry.slot);
        }
        let entry = Entry {
            used: uses,
            ..Entry::default()
        };
        let slot = Arc::clone(&entry.slot);
        entries.by_wish.insert(wanted.clone(), entry);
        slot
    }
}

impl Entries {
    /// Notes how many bytes an event's answer now has; forgets others, least recently used first.
    fn note(&mut self, wanted: &BodyKey, bytes: usize) {
        if let Some(entry) = self.by_wish.get_mut(wanted) {
            self.bytes = self.bytes.saturating_sub(entry.bytes).saturating_add(bytes);
            entry.bytes = bytes;
        }
        while self.bytes > RENDERED_BYTES_MAX {
            let oldest = self.by_wish.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(wanted, _)| wanted.clone()) else {
                return;
            };
            if let Some(gone) = self.by_wish.remove(&oldest) {
                self.bytes = self.bytes.saturating_sub(gone.bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;
    use std::pin::pin;

    use futures_util::poll;
    use soldonce_clock::ManualClock;

    use super::*;

    fn event(name: &str) -> BodyKey {
        BodyKey {
            event: EventId::parse(name).unwrap(),
            coding: Coding::Identity,
        }
    }

    fn rendering(seq: u64, bytes: usize) -> Rendering {
        Rendering {
            seq: Seq(seq),
            digest: Digest::default(),
            body: OpenBody::new(Coding::Identity, vec![b'x'; bytes].into()),
        }
    }

    /// What writes a small answer.
    type Write = Box<dyn FnOnce() -> Rendering + Send>;

    fn writes(write: impl FnOnce() -> Rendering + Send + 'static) -> (u32, Write) {
        (1, Box::new(write))
    }

    #[tokio::test]
    async fn it_is_written_once_per_number() {
        let (rendered, a) = (Rendered::default(), event("a"));
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(0));
        let get = async |at_least, written: Option<u64>| {
            let write = move || rendering(written.expect("it is known"), 1);
            let newest = async || Ok(writes(write));
            let got = rendered.get(&clock, &a, Seq(at_least), newest).await;
            got.unwrap().seq.0
        };
        assert_eq!(get(3, Some(3)).await, 3);
        assert_eq!(get(3, None).await, 3);
        assert_eq!(get(1, None).await, 3, "a newer one is known");
        assert_eq!(get(4, Some(4)).await, 4);
    }

    #[tokio::test]
    async fn who_asks_soon_after_waits_and_shares_the_next() {
        let (rendered, manual, a) = (Rendered::default(), ManualClock::at(0), event("a"));
        let clock: Arc<dyn Clock> = Arc::new(manual.clone());
        let took = Duration::from_millis(2);
        let slowly = manual.clone();
        let write = move || {
            slowly.advance(took);
            rendering(1, 1)
        };
        let slow = async || Ok(writes(write));
        rendered.get(&clock, &a, Seq(1), slow).await.unwrap();

        let asked = Cell::new(0);
        let newest = async || {
            asked.set(asked.get() + 1);
            Ok(writes(|| rendering(3, 1)))
        };
        let mut both = pin!(async {
            tokio::join!(
                rendered.get(&clock, &a, Seq(2), newest),
                rendered.get(&clock, &a, Seq(3), newest),
            )
        });
        tokio::select! {
            biased;
            _ = &mut both => panic!("one was written at once"),
            () = ready(()) => {}
        }
        assert_eq!(asked.get(), 0);
        manual.advance(took * RENDER_PAUSE_TIMES);
        let (first, second) = both.await;
        assert_eq!((first.unwrap().seq, second.unwrap().seq), (Seq(3), Seq(3)));
        assert_eq!(asked.get(), 1);
    }

    /// Checks that requests that are cancelled do not have two written at once.
    #[tokio::test]
    async fn a_large_one_is_kept_though_its_reader_left() {
        let (rendered, a) = (Rendered::default(), event("a"));
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(0));
        let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
        let write: Write = Box::new(move || {
            goes_on.recv().unwrap();
            rendering(1, 1)
        });
        let large = async || Ok((INLINE_RENDER_SEATS_MAX + 1, write));
        {
            let mut first = pin!(rendered.get(&clock, &a, Seq(1), large));
            assert!(poll!(first.as_mut()).is_pending());
        }
        let never = async || panic!("it is written twice");
        let mut second = pin!(rendered.get::<Write>(&clock, &a, Seq(1), never));
        assert!(poll!(second.as_mut()).is_pending());
        go_on.send(()).unwrap();
        assert_eq!(second.await.unwrap().seq, Seq(1));
        assert_eq!(lock(&rendered.entries).bytes, 1, "it counts all the same");
    }

    #[tokio::test]
    async fn what_is_kept_has_a_bound() {
        let (rendered, half) = (Rendered::default(), RENDERED_BYTES_MAX / 2 + 1);
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(0));
        for name in ["a", "b"] {
            let newest = async || Ok(writes(move || rendering(1, half)));
            let got = rendered.get(&clock, &event(name), Seq(1), newest).await;
            got.unwrap();
        }
        let kept = lock(&rendered.entries);
        assert!(kept.bytes <= RENDERED_BYTES_MAX);
        assert_eq!(
            kept.by_wish.keys().cloned().collect::<Vec<_>>(),
            [event("b")]
        );
    }
}
