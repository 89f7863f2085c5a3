//! What one holder may hold and buy (model.md 3). Holds that the clock has ended do not count,
//! written down or not.

use super::Inventory;
use super::books::{HolderAccount, OpenEvent};
use crate::{Budget, Hold, HoldId, Holder, Rejection, Timestamp};

/// What a holder is about to have besides what he has.
pub(super) struct Demand<'a> {
    pub(super) holder: &'a Holder,
    /// A hold of his that will be replaced and does not count.
    pub(super) besides: Option<HoldId>,
    pub(super) units: u32,
}

impl Inventory {
    /// Passes when the holder may hold so many more units, and buy them.
    ///
    /// # Errors
    /// `BudgetExceeded` with the limit and what counts against it.
    pub(super) fn require_budget(
        &self,
        book: &OpenEvent,
        now: Timestamp,
        demand: &Demand<'_>,
    ) -> Result<(), Rejection> {
        let limit = book.event.policy.units_per_holder_max;
        self.with_held(book, now, demand, |held| {
            within(Budget::Held, limit, held, demand.units)
        })?;
        self.require_bought(book, now, demand)
    }

    /// Passes when the holder may buy so many more units. What he holds he may buy, so it counts.
    ///
    /// # Errors
    /// `BudgetExceeded` with the limit and what counts against it.
    pub(super) fn require_bought(
        &self,
        book: &OpenEvent,
        now: Timestamp,
        demand: &Demand<'_>,
    ) -> Result<(), Rejection> {
        let Some(limit) = book.event.policy.units_bought_per_holder_max else {
            return Ok(());
        };
        let bought = book.holder(demand.holder).map_or(0, |holder| holder.bought);
        self.with_held(book, now, demand, |held| {
            within(
                Budget::Bought,
                limit,
                bought.saturating_add(held),
                demand.units,
            )
        })
    }

    /// Asks `check` with the number of units held live.
    fn with_held(
        &self,
        book: &OpenEvent,
        now: Timestamp,
        demand: &Demand<'_>,
        check: impl Fn(u32) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        let Some(holder) = book.holder(demand.holder) else {
            return check(0);
        };
        let besides = demand.besides.and_then(|id| self.holds.get(&id));
        let written_down = holder.held.saturating_sub(besides.map_or(0, Hold::count));
        // Never less than what is live, and known without a look at his holds.
        check(written_down).or_else(|_| check(self.held_live(holder, now, demand.besides)))
    }

    fn held_live(&self, holder: &HolderAccount, now: Timestamp, besides: Option<HoldId>) -> u32 {
        let live = (now.after(), HoldId::from_bits(0))..;
        holder
            .holds
            .range(live)
            .filter(|(_, id)| Some(*id) != besides)
            .filter_map(|(_, id)| self.holds.get(id))
            .fold(0, |sum, hold| sum.saturating_add(hold.count()))
    }
}

fn within(budget: Budget, limit: u32, used: u32, units: u32) -> Result<(), Rejection> {
    if used.saturating_add(units) <= limit {
        return Ok(());
    }
    Err(Rejection::BudgetExceeded {
        budget,
        limit,
        used,
    })
}
