//! Lists for staff: holds and bookings of an event, page by page, oldest first. An id is never
//! reused and its row is never deleted, so each row that existed when the first page was asked for
//! is on exactly one page.

use soldonce_core::{Booking, BookingId, EventId, Hold, HoldId, HolderName, Seq, Timestamp};

use super::{Engine, EngineError};
use crate::limits::{LIST_LOOK_MAX, LIST_MAX};
use crate::reply::{self, StoredReply};

/// The filter of a list, and the page that is asked for.
#[derive(Clone, Debug, Default)]
pub struct ListAsk<Id> {
    /// Only in one of these states, by name; empty is any.
    pub states: Vec<String>,
    /// Only of this holder.
    pub holder: Option<HolderName>,
    /// Only with this reference; holds have none.
    pub reference: Option<String>,
    /// Only those created at this time or later.
    pub from: Option<Timestamp>,
    /// Only those created before this time.
    pub until: Option<Timestamp>,
    /// The [`ListPage::next`] of the page before.
    pub after: Option<Id>,
    /// Most rows on this page; at most [`LIST_MAX`].
    pub limit: usize,
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct ListPage<Id> {
    /// The rows, each in its present state.
    pub found: Vec<StoredReply>,
    /// The id of the last row that was looked at for this page, shown or not; `None` after the last
    /// page. A page may be empty and have another one behind it.
    pub next: Option<Id>,
    /// Every commit of the event up to this one is in the list, if it is of one event.
    pub seq: Option<Seq>,
}

impl<Id> ListAsk<Id> {
    fn takes(&self, holder: &HolderName, state: &str, made_at: Timestamp) -> bool {
        (self.states.is_empty() || self.states.iter().any(|wanted| wanted == state))
            && self.holder.as_ref().is_none_or(|wanted| wanted == holder)
            && self.from.is_none_or(|from| from <= made_at)
            && self.until.is_none_or(|until| made_at < until)
    }
}

/// A page while it is filled.
struct PageBuilder<Id> {
    found: Vec<StoredReply>,
    limit: usize,
    last: Option<Id>,
    looked: usize,
    /// Whether there may be rows behind the last one.
    more: bool,
}

impl<Id: Copy> PageBuilder<Id> {
    fn new(ask: &ListAsk<Id>) -> Self {
        Self {
            found: Vec::new(),
            limit: ask.limit.clamp(1, LIST_MAX),
            last: ask.after,
            looked: 0,
            more: true,
        }
    }

    fn is_full(&self) -> bool {
        self.found.len() >= self.limit || self.looked >= LIST_LOOK_MAX
    }

    /// Takes the next rows, as far as there is room. Returns whether the page is done.
    fn take<T>(
        &mut self,
        rows: &[T],
        id: impl Fn(&T) -> Id,
        show: impl Fn(&T) -> Option<StoredReply>,
    ) -> bool {
        for row in rows {
            if self.is_full() {
                return true;
            }
            self.last = Some(id(row));
            self.looked = self.looked.saturating_add(1);
            self.found.extend(show(row));
        }
        self.more = rows.len() == LIST_MAX;
        !self.more || self.is_full()
    }

    fn page(self, seq: Seq) -> ListPage<Id> {
        ListPage {
            found: self.found,
            next: self.last.filter(|_| self.more),
            seq: Some(seq),
        }
    }
}

impl Engine {
    /// Lists the holds of an event, over or not, in the order in which they were made.
    ///
    /// # Errors
    /// `EventNotFound`.
    pub async fn holds_in(
        &self,
        event: &EventId,
        ask: &ListAsk<HoldId>,
    ) -> Result<ListPage<HoldId>, EngineError> {
        let live = self.live(event).await?;
        let (event, seq) = (live.event(), live.seq());
        let mut page = PageBuilder::new(ask);
        loop {
            let rows = self.parts.ledger.holds_in(event.no, (page.last, LIST_MAX));
            let (rows, now) = (rows.await?, self.now());
            let show = |hold: &Hold| {
                let state = hold.state_in(&event, now);
                let is_meant = ask.takes(&hold.holder.name, state.as_str(), hold.created_at);
                is_meant.then(|| reply::hold_now(&event, hold, now))
            };
            if page.take(&rows, |hold| hold.id, show) {
                return Ok(page.page(seq));
            }
        }
    }

    /// Lists the bookings of an event in the order in which they were made.
    ///
    /// # Errors
    /// `EventNotFound`.
    pub async fn bookings_in(
        &self,
        event: &EventId,
        ask: &ListAsk<BookingId>,
    ) -> Result<ListPage<BookingId>, EngineError> {
        let live = self.live(event).await?;
        let (event, seq) = (live.event(), live.seq());
        let mut page = PageBuilder::new(ask);
        loop {
            let next = (page.last, LIST_MAX);
            let rows = self.parts.ledger.bookings_in(event.no, next).await?;
            let show = |booking: &Booking| {
                let reference = booking.reference.as_ref().map(soldonce_core::Text::as_str);
                let wanted = ask.reference.as_deref();
                let (holder, state) = (&booking.holder.name, booking.state.as_str());
                let is_meant = (wanted.is_none() || wanted == reference)
                    && ask.takes(holder, state, booking.created_at);
                is_meant.then(|| reply::booking(&event, booking))
            };
            if page.take(&rows, |booking| booking.id, show) {
                return Ok(page.page(seq));
            }
        }
    }
}
