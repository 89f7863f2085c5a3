//! Large answers that many readers ask for at once: written once per commit number, shared, and
//! forgotten when they are too many.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use soldonce_core::{EventId, Seq};
use tokio::task::spawn_blocking;

use super::coding::{Coding, OpenBody};
use super::problem::Problem;
use crate::limits::{INLINE_RENDER_SEATS_MAX, RENDERED_BYTES_MAX};

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

type Slot = tokio::sync::Mutex<Option<Rendering>>;

impl Rendered {
    /// The answer of an event at `at_least` this commit number; `write` writes it, of so many
    /// `units`, unless another request just did.
    pub(super) async fn get(
        &self,
        wanted: &Wanted,
        at_least: Seq,
        units: u32,
        write: impl FnOnce() -> Rendering + Send + 'static,
    ) -> Result<Rendering, Problem> {
        let slot = self.slot(wanted);
        let mut latest = slot.lock().await;
        if let Some(known) = latest.as_ref().filter(|known| known.seq >= at_least) {
            return Ok(known.clone());
        }
        let written = if units <= INLINE_RENDER_SEATS_MAX {
            write()
        } else {
            let written = spawn_blocking(write).await;
            written.map_err(|error| Problem::internal(&error))?
        };
        *latest = Some(written.clone());
        drop(latest);
        self.entries().note(wanted, written.body.bytes.len());
        Ok(written)
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
        let rendered = Rendered::default();
        let a = event("a");
        let first = rendered
            .get(&a, Seq(3), 1, || rendering(3, 1))
            .await
            .unwrap();
        let again = rendered
            .get(&a, Seq(3), 1, || unreachable!("it is known"))
            .await
            .unwrap();
        assert_eq!((first.seq, again.seq), (Seq(3), Seq(3)));
        let older = rendered
            .get(&a, Seq(1), 1, || unreachable!("newer is known"))
            .await
            .unwrap();
        assert_eq!(older.seq, Seq(3));
        let newer = rendered
            .get(&a, Seq(4), 100_000, || rendering(4, 1))
            .await
            .unwrap();
        assert_eq!(newer.seq, Seq(4));
    }

    #[tokio::test]
    async fn what_is_kept_has_a_bound() {
        let rendered = Rendered::default();
        let half = RENDERED_BYTES_MAX / 2 + 1;
        for name in ["a", "b"] {
            rendered
                .get(&event(name), Seq(1), 1, move || rendering(1, half))
                .await
                .unwrap();
        }
        let kept = rendered.entries();
        assert!(kept.bytes <= RENDERED_BYTES_MAX);
        assert_eq!(
            kept.by_wish.keys().cloned().collect::<Vec<_>>(),
            [event("b")]
        );
    }
}
