//! What shoppers at one address hold now, as far as this server knows: the holds that it made. In
//! memory of a fixed size; a restart forgets it. Decides nothing about units: it is asked before the
//! ledger.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use soldonce_core::{Event, EventNo, HoldId, Span, Timestamp, words};
use soldonce_engine::rate::HeldSums;

use crate::limits::{HELD_ENTRIES_MAX, HELD_LOOK_MS};

/// How much shoppers at one address (IPv6: at one /64 network) may hold at once. None is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldLimits {
    /// Units in live holds.
    pub units: Option<u32>,
    /// Percent of an event's units in live holds, and never less than two holders may have.
    pub share_percent: Option<u32>,
    /// Holds whose payment has begun and has not ended.
    pub checkouts: Option<u32>,
}

words! {
    /// Which of these limits, by their names in headers and metrics.
    pub(crate) HeldKind:
    Units = "held",
    Share = "share",
    Checkouts = "checkouts",
}

impl HeldKind {
    /// Returns the sum that it limits.
    pub(crate) fn of(self, sums: HeldSums) -> u32 {
        match self {
            Self::Units => sums.units,
            Self::Share => sums.of_event,
            Self::Checkouts => sums.checkouts,
        }
    }
}

impl HeldLimits {
    /// Holders whose budget an address has in every event, however small: a family's.
    const HOLDERS_MIN: u32 = 2;

    /// Returns the limits that a request meets, each with its number.
    pub(crate) fn of_request(
        self,
        event: &Event,
        wish: Wish,
    ) -> impl Iterator<Item = (HeldKind, u32)> + use<> {
        let share = self.share_percent.map(|percent| {
            let part = u64::from(event.chart.units()) * u64::from(percent) / 100;
            let least = event.policy.units_per_holder_max;
            let least = least.saturating_mul(Self::HOLDERS_MIN);
            u32::try_from(part).unwrap_or(u32::MAX).max(least)
        });
        HeldKind::ALL.into_iter().filter_map(move |kind| {
            let (limit, more) = match kind {
                HeldKind::Units => (self.units, wish.units),
                HeldKind::Share => (share, wish.units),
                HeldKind::Checkouts => (self.checkouts, wish.checkouts),
            };
            limit.filter(|_| more > 0).map(|limit| (kind, limit))
        })
    }
}

/// What a request would add.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) address: u128,
    pub(crate) event: EventNo,
    pub(crate) units: u32,
    pub(crate) checkouts: u32,
    /// When a new hold ends, at the latest; now where it adds to one.
    pub(crate) ends_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// A request under way: counted until it ends.
    Pending(u64),
    Hold(HoldId),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    of: Of,
    event: EventNo,
    units: u32,
    checkouts: u32,
    /// From then on the ledger is asked what became of it.
    look_at: Timestamp,
}

#[derive(Debug, Default)]
struct Account {
    entries: Vec<Entry>,
    /// Before then its holds are not all looked at again.
    next_look_at: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct State {
    by_address: HashMap<u128, Account>,
    entries: usize,
    /// The number of the last request.
    pending: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Held {
    state: Mutex<State>,
}

/// A request that is counted; forgotten when dropped, unless it became a hold.
#[derive(Debug)]
pub(crate) struct Reserved {
    held: Arc<Held>,
    address: u128,
    number: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut state = crate::lock(&self.held.state);
        state.take(self.address, Of::Pending(self.number));
    }
}

impl Reserved {
    /// Counts the request as a hold from now on. The ledger is asked about it when it ends, or at once
    /// where the hold was known before.
    pub(crate) fn becomes(self, hold: HoldId, now: Timestamp) {
        let mut state = crate::lock(&self.held.state);
        let Some(asked) = state.find(self.address, Of::Pending(self.number)).copied() else {
            return;
        };
        if let Some(known) = state.find(self.address, Of::Hold(hold)) {
            known.units = known.units.saturating_add(asked.units);
            known.checkouts = known.checkouts.max(asked.checkouts);
            known.look_at = now;
        } else if let Some(entry) = state.find(self.address, Of::Pending(self.number)) {
            entry.of = Of::Hold(hold);
        }
    }
}

impl State {
    fn add(&mut self, address: u128, entry: Entry) {
        let account = self.by_address.entry(address).or_default();
        account.entries.push(entry);
        self.entries = self.entries.saturating_add(1);
    }

    fn take(&mut self, address: u128, of: Of) -> Option<Entry> {
        let account = self.by_address.get_mut(&address)?;
        let at = account.entries.iter().position(|entry| entry.of == of)?;
        let entry = account.entries.swap_remove(at);
        if account.entries.is_empty() {
            self.by_address.remove(&address);
        }
        self.entries = self.entries.saturating_sub(1);
        Some(entry)
    }

    fn find(&mut self, address: u128, of: Of) -> Option<&mut Entry> {
        let account = self.by_address.get_mut(&address)?;
        account.entries.iter_mut().find(|entry| entry.of == of)
    }

    fn entries(&self, address: u128) -> &[Entry] {
        let account = self.by_address.get(&address);
        account.map_or(&[], |account| &account.entries)
    }

    fn sums(&self, address: u128, event: EventNo) -> HeldSums {
        let mut sums = HeldSums::default();
        for entry in self.entries(address) {
            sums.units = sums.units.saturating_add(entry.units);
            sums.checkouts = sums.checkouts.saturating_add(entry.checkouts);
            if entry.event == event {
                sums.of_event = sums.of_event.saturating_add(entry.units);
            }
        }
        sums
    }

    /// Makes room by forgetting what is over, of addresses that did not come back.
    fn forget_ended(&mut self, now: Timestamp) {
        let mut left = 0;
        self.by_address.retain(|_, account| {
            let is_pending = |entry: &Entry| matches!(entry.of, Of::Pending(_));
            let entries = &mut account.entries;
            entries.retain(|entry| is_pending(entry) || now < entry.look_at);
            left += account.entries.len();
            !account.entries.is_empty()
        });
        self.entries = left;
    }
}

impl Held {
    /// Counts a request if that exceeds no limit; returns it with what is held then. While memory is
    /// full a further request is not counted.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        wish: Wish,
        limits: impl Iterator<Item = (HeldKind, u32)>,
        now: Timestamp,
    ) -> Result<(Option<Reserved>, HeldSums), HeldKind> {
        let mut state = crate::lock(&self.state);
        let mut sums = state.sums(wish.address, wish.event);
        sums.units = sums.units.saturating_add(wish.units);
        sums.of_event = sums.of_event.saturating_add(wish.units);
        sums.checkouts = sums.checkouts.saturating_add(wish.checkouts);
        exceeded(sums, limits).map_or(Ok(()), Err)?;
        if state.entries >= HELD_ENTRIES_MAX {
            state.forget_ended(now);
        }
        if state.entries >= HELD_ENTRIES_MAX {
            return Ok((None, sums));
        }
        state.pending = state.pending.wrapping_add(1);
        let number = state.pending;
        let entry = Entry {
            of: Of::Pending(number),
            event: wish.event,
            units: wish.units,
            checkouts: wish.checkouts,
            look_at: wish.ends_at,
        };
        state.add(wish.address, entry);
        let reserved = Reserved {
            held: Arc::clone(self),
            address: wish.address,
            number,
        };
        Ok((Some(reserved), sums))
    }

    /// Returns the holds of an address that may be over by now, or all of them.
    pub(crate) fn to_look_at(&self, address: u128, now: Option<Timestamp>) -> Vec<HoldId> {
        let state = crate::lock(&self.state);
        let entries = state.entries(address).iter();
        entries
            .filter(|entry| now.is_none_or(|now| now >= entry.look_at))
            .filter_map(|entry| match entry.of {
                Of::Hold(hold) => Some(hold),
                Of::Pending(_) => None,
            })
            .collect()
    }

    /// Returns whether all holds of an address may be looked at now: once in a while, because each costs
    /// the ledger a read.
    pub(crate) fn may_look(&self, address: u128, now: Timestamp) -> bool {
        let mut state = crate::lock(&self.state);
        let Some(account) = state.by_address.get_mut(&address) else {
            return false;
        };
        let may = account.next_look_at.is_none_or(|next| next <= now);
        if may {
            account.next_look_at = Some(now.plus(Span::from_ms(HELD_LOOK_MS)));
        }
        may
    }

    /// Takes over what the ledger says of a live hold.
    pub(crate) fn learn(&self, address: u128, hold: &soldonce_core::Hold) {
        if let Some(entry) = crate::lock(&self.state).find(address, Of::Hold(hold.id)) {
            entry.units = hold.count();
            entry.checkouts = u32::from(hold.state.booking().is_some());
            entry.look_at = hold.expires_at;
        }
    }

    /// Marks a hold: the ledger is asked about it before the next request is counted.
    pub(crate) fn doubt(&self, address: u128, hold: HoldId, now: Timestamp) {
        if let Some(entry) = crate::lock(&self.state).find(address, Of::Hold(hold)) {
            entry.look_at = now;
        }
    }

    /// Forgets a hold that is over. Returns its event if the hold was known.
    pub(crate) fn forget(&self, address: u128, hold: HoldId) -> Option<EventNo> {
        Some(
            crate::lock(&self.state)
                .take(address, Of::Hold(hold))?
                .event,
        )
    }

    /// Returns the event of a hold that is counted, and its payments under way.
    pub(crate) fn find(&self, address: u128, hold: HoldId) -> Option<(EventNo, u32)> {
        let mut state = crate::lock(&self.state);
        let entry = state.find(address, Of::Hold(hold))?;
        Some((entry.event, entry.checkouts))
    }

    /// Returns what an address holds of an event alone, and when the last of it ends.
    pub(crate) fn of_event(&self, address: u128, event: EventNo) -> (HeldSums, Option<Timestamp>) {
        let state = crate::lock(&self.state);
        let mut sums = HeldSums::default();
        let mut last = None;
        let entries = state.entries(address).iter();
        for entry in entries.filter(|entry| entry.event == event) {
            sums.of_event = sums.of_event.saturating_add(entry.units);
            sums.checkouts = sums.checkouts.saturating_add(entry.checkouts);
            last = last.max(Some(entry.look_at));
        }
        (sums, last)
    }

    /// Returns when the first of an address' holds ends, of those whose end is known.
    pub(crate) fn first_end(&self, address: u128, now: Timestamp) -> Option<Timestamp> {
        let state = crate::lock(&self.state);
        let ends = state.entries(address).iter().map(|entry| entry.look_at);
        ends.filter(|end| *end > now).min()
    }
}

/// Returns the first limit that these sums exceed.
pub(crate) fn exceeded(
    sums: HeldSums,
    mut limits: impl Iterator<Item = (HeldKind, u32)>,
) -> Option<HeldKind> {
    let over = limits.find(|(kind, limit)| kind.of(sums) > *limit);
    over.map(|(kind, _)| kind)
}
