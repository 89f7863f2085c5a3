//! Checks of a hold request without looking at units: the guards that come first. Ledgers and
//! shields use the same ones, so that both refuse with the same reason.

use crate::limits::HOLD_TTL_MS_MIN;
use crate::{Event, Invalid, Rejection, Span, Timestamp};

/// How many units a request wants, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct RequestedTerms {
    pub count: u32,
    /// The time to live; `None` is the policy's.
    pub ttl: Option<Span>,
    pub ttl_max: TtlMax,
}

/// The longest time to live that a caller may ask for, as the event's policy says it when the command is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlMax {
    /// The policy's time to live: for shoppers.
    HoldTtl,
    /// The policy's cap: for callers with a key.
    HoldMax,
}

impl Event {
    /// Checks a request to hold so many units for so long; returns its time to live.
    ///
    /// # Errors
    /// `NotOnSale`, `Invalid` for no unit, `TooManyUnits`, `Invalid` for a time out of bounds; in this order.
    pub fn require_terms(&self, now: Timestamp, terms: RequestedTerms) -> Result<Span, Rejection> {
        self.require_on_sale(now)?;
        self.require_count(terms.count)?;
        self.require_ttl(terms.ttl, terms.ttl_max)
    }

    /// Checks the number of units that one hold may have.
    pub(crate) fn require_count(&self, count: u32) -> Result<(), Rejection> {
        let limit = self.policy.units_per_hold_max;
        match count {
            0 => Err(Invalid::new("units", "name at least one unit".to_owned()).into()),
            count if count > limit => Err(Rejection::TooManyUnits { limit }),
            _ => Ok(()),
        }
    }

    /// Checks the requested time to live and returns it, or the policy's.
    pub(crate) fn require_ttl(
        &self,
        requested: Option<Span>,
        most: TtlMax,
    ) -> Result<Span, Rejection> {
        let most = match most {
            TtlMax::HoldTtl => self.policy.hold_ttl,
            TtlMax::HoldMax => self.policy.hold_max,
        };
        match requested {
            None => Ok(self.policy.hold_ttl),
            Some(ttl) if (HOLD_TTL_MS_MIN..=most.ms()).contains(&ttl.ms()) => Ok(ttl),
            Some(ttl) => {
                let (ttl, most) = (ttl.ms(), most.ms());
                let text = format!("{ttl} is outside {HOLD_TTL_MS_MIN} ..= {most}");
                Err(Invalid::new("ttl_ms", text).into())
            }
        }
    }
}
