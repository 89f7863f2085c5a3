//! Large answers that many readers ask for at once: written once per commit number, shared, and
//! forgotten when they are too many.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use soldonce_clock::{BootTime, Clock};
use soldonce_core::{EventId, Seq};
use tokio::task::spawn_blocking;

use super::coding::{Coding, OpenBody};
use super::problem::Problem;
use crate::limits::{
    INLINE_RENDER_SEATS_MAX, RENDER_PAUSE_MS_MAX, RENDER_PAUSE_TIMES, RENDERED_BYTES_MAX,
};

/// An answer, and the commit number it shows.
#[derive(Clone, Debug)]
pub(super) struct Rendering {
    pub(super) seq: Seq,
    pub(super) body: OpenBody,
}

/// Which answer is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wanted {
    pub(super) event: EventId,
    pub(super) coding: Coding,
}

/// The newest answer of each event in each coding. One reader writes it, those who come meanwhile wait for it.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_wish: BTreeMap<Wanted, Entry>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug, Default)]
struct Entry {
    slot: Arc<Slot>,
    bytes: usize,
    used: u64,
}

type Slot = tokio::sync::Mutex<Option<Written>>;

#[derive(Debug)]
struct Written {
    rendering: Rendering,
    /// No other is written before.
    next_at: BootTime,
}

impl Rendered {
    /// The answer of an event at `at_least` this commit number. `write` writes the newest, unless another request
    /// just did. Soon after one was written the next one waits, so that it serves all who came meanwhile.
    pub(super) async fn get<F>(
        &self,
        clock: &dyn Clock,
        wanted: &Wanted,
        at_least: Seq,
        write: impl FnOnce() -> F,
    ) -> Result<Rendering, Problem>
    where
        F: Future<Output = Result<Rendering, Problem>>,
    {
        let slot = self.slot(wanted);
        let mut latest = slot.lock().await;
        if let Some(known) = &*latest {
            if known.rendering.seq >= at_least {
                return Ok(known.rendering.clone());
            }
            clock.sleep_until(known.next_at).await;
        }
        let began = clock.boot();
        let rendering = write().await?;
        let now = clock.boot();
        let pause = now.since(began).saturating_mul(RENDER_PAUSE_TIMES);
        *latest = Some(Written {
            rendering: rendering.clone(),
            next_at: now.plus(pause.min(Duration::from_millis(RENDER_PAUSE_MS_MAX))),
        });
        drop(latest);
        self.entries().note(wanted, rendering.body.bytes.len());
        Ok(rendering)
    }

    fn slot(&self, wanted: &Wanted) -> Arc<Slot> {
        let mut entries = self.entries();
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

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renders so many `units`, many of them away from the threads that serve connections.
pub(super) async fn render(
    units: u32,
    write: impl FnOnce() -> Rendering + Send + 'static,
) -> Result<Rendering, Problem> {
    if units <= INLINE_RENDER_SEATS_MAX {
        return Ok(write());
    }
    let written = spawn_blocking(write).await;
    written.map_err(|error| Problem::internal(&error))
}

impl Entries {
    /// An event's answer now has so many bytes; forgets others, least recently used first.
    fn note(&mut self, wanted: &Wanted, bytes: usize) {
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

    use soldonce_clock::ManualClock;

    use super::*;

    fn event(name: &str) -> Wanted {
        Wanted {
            event: EventId::parse(name).unwrap(),
            coding: Coding::Identity,
        }
    }

    fn rendering(seq: u64, bytes: usize) -> Rendering {
        Rendering {
            seq: Seq(seq),
            body: OpenBody::new(Coding::Identity, vec![b'x'; bytes].into()),
        }
    }

    #[tokio::test]
    async fn it_is_written_once_per_number() {
        let (rendered, clock, a) = (Rendered::default(), ManualClock::at(0), event("a"));
        let get = async |at_least, written: Option<u64>| {
            let write = async || Ok(rendering(written.expect("it is known"), 1));
            let got = rendered.get(&clock, &a, Seq(at_least), write).await;
            got.unwrap().seq.0
        };
        assert_eq!(get(3, Some(3)).await, 3);
        assert_eq!(get(3, None).await, 3);
        assert_eq!(get(1, None).await, 3, "a newer one is known");
        assert_eq!(get(4, Some(4)).await, 4);
    }

    #[tokio::test]
    async fn who_asks_soon_after_waits_and_shares_the_next() {
        let (rendered, clock, a) = (Rendered::default(), ManualClock::at(0), event("a"));
        let took = Duration::from_millis(2);
        let slow = async || {
            clock.advance(took);
            Ok(rendering(1, 1))
        };
        rendered.get(&clock, &a, Seq(1), slow).await.unwrap();

        let writes = Cell::new(0);
        let write = async || {
            writes.set(writes.get() + 1);
            Ok(rendering(3, 1))
        };
        let mut both = pin!(async {
            tokio::join!(
                rendered.get(&clock, &a, Seq(2), write),
                rendered.get(&clock, &a, Seq(3), write),
            )
        });
        tokio::select! {
            biased;
            _ = &mut both => panic!("one was written at once"),
            () = ready(()) => {}
        }
        assert_eq!(writes.get(), 0);
        clock.advance(took * RENDER_PAUSE_TIMES);
        let (first, second) = both.await;
        assert_eq!((first.unwrap().seq, second.unwrap().seq), (Seq(3), Seq(3)));
        assert_eq!(writes.get(), 1);
    }

    #[tokio::test]
    async fn what_is_kept_has_a_bound() {
        let (rendered, clock) = (Rendered::default(), ManualClock::at(0));
        let half = RENDERED_BYTES_MAX / 2 + 1;
        for name in ["a", "b"] {
            let write = async || Ok(rendering(1, half));
            let got = rendered.get(&clock, &event(name), Seq(1), write).await;
            got.unwrap();
        }
        let kept = rendered.entries();
        assert!(kept.bytes <= RENDERED_BYTES_MAX);
        assert_eq!(
            kept.by_wish.keys().cloned().collect::<Vec<_>>(),
            [event("b")]
        );
    }
}
