//! The rules of one event that its owner chooses.

use crate::limits::{HOLD_LIFETIME_MS_MAX, HOLD_TTL_MS_MIN, UNITS_PER_HOLD_MAX, WINDOW_MS_MAX};
use crate::{Invalid, Span, Timestamp};

/// What happens to money that arrives after its hold ended (model.md 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LatePayment {
    /// It goes back and the booking stays expired.
    Refuse,
    /// The units are sold if nobody has them; else it goes back.
    #[default]
    IfStillFree,
    /// It goes back.
    Refund,
}

/// What happens to the hold when payment fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnPaymentFailure {
    /// The same buyer keeps the units for the retry window.
    #[default]
    Keep,
    /// The units are free at once.
    Release,
}

/// Which seat choices are refused for the sake of the hall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Adjacency {
    /// None.
    #[default]
    None,
    /// Those that leave a single free seat where they need not.
    NoOrphan,
}

/// Per event: times, budgets and rules (api.md 3 gives the defaults).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long a hold lives when the caller does not say.
    pub hold_ttl: Span,
    /// How long it may live with all extensions.
    pub hold_max: Span,
    /// Most units of one hold.
    pub units_per_hold_max: u32,
    /// Most units one holder may hold live at once.
    pub units_per_holder_max: u32,
    /// Most units one holder may have bought; none is no limit.
    pub units_bought_per_holder_max: Option<u32>,
    /// How long a pinned hold waits for the money.
    pub payment_window: Span,
    /// How long the buyer keeps the units after a failed payment.
    pub retry_window: Span,
    /// What late money meets.
    pub late_payment: LatePayment,
    /// What a failed payment does to the hold.
    pub on_payment_failure: OnPaymentFailure,
    /// Which seat choices are refused.
    pub adjacency: Adjacency,
    /// Sale begins; none is at once.
    pub sale_opens_at: Option<Timestamp>,
    /// Sale ends; none is never.
    pub sale_closes_at: Option<Timestamp>,
    /// Owners may cancel before this; none is always.
    pub cancel_until: Option<Timestamp>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            hold_ttl: Span::from_ms(600_000),
            hold_max: Span::from_ms(1_800_000),
            units_per_hold_max: 10,
            units_per_holder_max: 20,
            units_bought_per_holder_max: None,
            payment_window: Span::from_ms(600_000),
            retry_window: Span::from_ms(120_000),
            late_payment: LatePayment::default(),
            on_payment_failure: OnPaymentFailure::default(),
            adjacency: Adjacency::default(),
            sale_opens_at: None,
            sale_closes_at: None,
            cancel_until: None,
        }
    }
}

impl Policy {
    /// Passes a policy whose parts agree and stay within their bounds.
    ///
    /// # Errors
    /// The first setting that is wrong, with the bound it breaks.
    pub fn validate(&self) -> Result<(), Invalid> {
        let spans = [
            (
                "policy.hold_max_ms",
                self.hold_max,
                HOLD_TTL_MS_MIN,
                HOLD_LIFETIME_MS_MAX,
            ),
            (
                "policy.hold_ttl_ms",
                self.hold_ttl,
                HOLD_TTL_MS_MIN,
                self.hold_max.ms(),
            ),
            (
                "policy.payment_window_ms",
                self.payment_window,
                HOLD_TTL_MS_MIN,
                WINDOW_MS_MAX,
            ),
            (
                "policy.retry_window_ms",
                self.retry_window,
                HOLD_TTL_MS_MIN,
                WINDOW_MS_MAX,
            ),
        ];
        for (field, span, least, most) in spans {
            if !(least..=most).contains(&span.ms()) {
                return Err(Invalid::new(
                    field,
                    format!("{} is outside {least} ..= {most}", span.ms()),
                ));
            }
        }
        let bought = self.units_bought_per_holder_max.unwrap_or(u32::MAX);
        let counts = [
            (
                "policy.units_per_hold_max",
                self.units_per_hold_max,
                UNITS_PER_HOLD_MAX,
            ),
            (
                "policy.units_per_holder_max",
                self.units_per_holder_max,
                u32::MAX,
            ),
            ("policy.units_bought_per_holder_max", bought, u32::MAX),
        ];
        for (field, count, most) in counts {
            if !(1..=most).contains(&count) {
                let text = format!("{count} is outside 1 ..= {most}");
                return Err(Invalid::new(field, text));
            }
        }
        match (self.sale_opens_at, self.sale_closes_at) {
            (Some(opens), Some(closes)) if closes <= opens => Err(Invalid::new(
                "policy.sale_closes_at",
                "the sale must close after it opens".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}
