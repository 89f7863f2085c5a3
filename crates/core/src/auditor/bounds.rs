//! The terms of an event that its history can show.

use crate::{Policy, Span};

/// The limits that the auditor holds a history to.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) hold_max: Span,
    pub(super) units_per_hold_max: u32,
    pub(super) units_per_holder_max: u32,
    pub(super) payment_window: Span,
}

impl From<&Policy> for Bounds {
    /// Takes every field by name, so that a new one does not compile before it is judged or left
    /// out.
    fn from(policy: &Policy) -> Self {
        let Policy {
            hold_max,
            units_per_hold_max,
            units_per_holder_max,
            payment_window,
            // The caller may ask for less than the first, and gets what the second leaves.
            hold_ttl: _,
            retry_window: _,
            // Transitions do not say who bought, nor what the provider did.
            units_bought_per_holder_max: _,
            late_payment: _,
            on_payment_failure: _,
            // Judged by tests of core: neighbours, and when a sale is open.
            adjacency: _,
            sale_opens_at: _,
            sale_closes_at: _,
            cancel_until: _,
            listed: _,
        } = policy;
        Self {
            hold_max: *hold_max,
            units_per_hold_max: *units_per_hold_max,
            units_per_holder_max: *units_per_holder_max,
            payment_window: *payment_window,
        }
    }
}
