//! Planted bugs: each breaks one rule on purpose, so that a rig can be seen to catch it
//! (assurance.md 6). Without the feature `planted` none can be switched on and the checks vanish.

#[cfg(all(feature = "planted", not(debug_assertions)))]
compile_error!("planted bugs must never be in a release build");

/// A bug that can be planted in the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// `<=` in place of `<` in confirm.
    ExpiryBoundary,
    /// Confirm relies on the sweeper.
    ConfirmIgnoresExpiry,
    /// Release frees units without looking at their owner.
    BlindRelease,
    /// A refused hold keeps the units won before the conflict.
    PartialHold,
    /// Extend ignores the cap.
    ExtendWithoutCap,
    /// A new owner gets the old fence.
    SkippedFence,
    /// The holder's budget is not looked at.
    BudgetIgnored,
    /// A takeover of an expired hold frees only the wanted unit.
    TakeoverPartial,
    /// A hold may take what is held.
    TakesHeld,
    /// The clock of the ledger may go back.
    ClockGoesBack,
    /// Money is asked for when payment begins, and not when the units are sold.
    CaptureBeforeSale,
    /// What goes back is counted twice.
    RefundTwice,
    /// Totals of a report are taken for steps.
    EventTwice,
    /// An older report moves a payment back.
    EventBackwards,
    /// Nobody cares for money that comes after the hold ended.
    LateMoneyDropped,
    /// What was paid for lines that were given back counts for both bookings.
    CreditTwice,
}

impl Planted {
    /// Every one of the rules of units and holds.
    pub const ALL: [Self; 10] = [
        Self::ExpiryBoundary,
        Self::ConfirmIgnoresExpiry,
        Self::BlindRelease,
        Self::PartialHold,
        Self::ExtendWithoutCap,
        Self::SkippedFence,
        Self::BudgetIgnored,
        Self::TakeoverPartial,
        Self::TakesHeld,
        Self::ClockGoesBack,
    ];

    /// Every one of the rules of money.
    pub const MONEY: [Self; 6] = [
        Self::CaptureBeforeSale,
        Self::RefundTwice,
        Self::EventTwice,
        Self::EventBackwards,
        Self::LateMoneyDropped,
        Self::CreditTwice,
    ];
}
