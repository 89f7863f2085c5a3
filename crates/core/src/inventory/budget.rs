//! What one holder may hold and buy (model.md 3). A limit is a function of the policy, of the holder's
//! account and of the demand; it has no access to anything else.

use super::Inventory;
use super::indexes::OpenEvent;
use super::work::Work;
use crate::{Budget, Hold, HoldId, Holder, Policy, Rejection};

/// The units that a holder asks for in addition.
pub(super) struct Demand<'a> {
    pub(super) holder: &'a Holder,
    /// A hold of this holder that will be replaced and does not count.
    pub(super) except: Option<HoldId>,
    pub(super) units: u32,
}

/// What a holder has, holds that the clock has ended left out. A limit may read nothing else but
/// the event: a read is noted in the [`crate::Basis`] of the command.
#[derive(Clone, Copy)]
pub(super) struct Account {
    held: u32,
    bought: u32,
}

/// A check of a demand: [`may_hold`] or [`may_buy`].
pub(super) type Limit = fn(&Policy, Account, &Demand<'_>) -> Result<(), Rejection>;

/// Checks that the holder may hold, and buy, the units.
pub(super) fn may_hold(
    policy: &Policy,
    account: Account,
    demand: &Demand<'_>,
) -> Result<(), Rejection> {
    let limit = policy.units_per_holder_max;
    within(Budget::Held, limit, account.held, demand.units)?;
    may_buy(policy, account, demand)
}

/// Checks that the holder may buy the units; those they hold count.
pub(super) fn may_buy(
    policy: &Policy,
    account: Account,
    demand: &Demand<'_>,
) -> Result<(), Rejection> {
    match policy.units_bought_per_holder_max {
        Some(limit) => {
            let used = account.bought.saturating_add(account.held);
            within(Budget::Bought, limit, used, demand.units)
        }
        None => Ok(()),
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

impl Inventory {
    /// Checks by a limit that the holder may have so many more units.
    ///
    /// # Errors
    /// `BudgetExceeded` with the limit and what counts against it.
    pub(super) fn require_budget(
        &self,
        work: &mut Work<'_>,
        book: &OpenEvent,
        demand: &Demand<'_>,
        limit: Limit,
    ) -> Result<(), Rejection> {
        work.basis.holders.push(demand.holder.clone());
        let known = book.holder(demand.holder);
        let except = demand.except.and_then(|id| self.holds.get(&id));
        let written_down = known.map_or(0, |known| known.held);
        // Never less than what is live, and known without reading the holds.
        let most = Account {
            held: written_down.saturating_sub(except.map_or(0, Hold::count)),
            bought: known.map_or(0, |known| known.bought),
        };
        let check = |account| limit(&book.event.policy, account, demand);
        check(most).or_else(|_| {
            let live = (work.now.after(), HoldId::from_bits(0))..;
            let holds = known
                .into_iter()
                .flat_map(|known| known.holds.range(live.clone()));
            let held = holds
                .filter(|(_, id)| Some(*id) != demand.except)
                .filter_map(|(_, id)| self.holds.get(id))
                .fold(0, |sum: u32, hold| sum.saturating_add(hold.count()));
            check(Account { held, ..most })
        })
    }
}
