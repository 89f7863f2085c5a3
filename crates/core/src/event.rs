//! An event: one performance on one chart, with its prices and its policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::limits::{DROP_AFTER_MS_MIN, PRICE_MAX};
use crate::{
    Amount, CategoryNo, Chart, Currency, EventId, EventNo, Invalid, Policy, PolicyChange,
    Rejection, Span, Text, Timestamp,
};

/// Whether an event sells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventState {
    /// It sells inside its sale window.
    Open,
    Cancelled(Text),
}

/// What must end before an event can be dropped, as its ledger has it.
#[derive(Clone, Copy, Debug)]
pub struct EventUse {
    pub last_commit: Timestamp,
    /// Live holds, unsettled bookings, open effects and open deliveries.
    pub open: u64,
}

/// The request for a new event.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub id: EventId,
    pub name: Text,
    /// When it starts; coupons and stock have no start.
    pub starts_at: Option<Timestamp>,
    pub currency: Currency,
    pub chart: Arc<Chart>,
    /// Price of each category, by the category's name.
    pub prices: BTreeMap<String, Amount>,
    pub policy: Policy,
    /// SHA-256 of the request: the same id with the same request is the same event.
    pub fingerprint: [u8; 32],
}

/// Fields of an event to be set; those that are not named stay as they are.
#[derive(Clone, Debug, Default)]
pub struct EventChange {
    pub name: Option<Text>,
    pub starts_at: Option<Timestamp>,
    pub policy: PolicyChange,
}

impl From<PolicyChange> for EventChange {
    fn from(policy: PolicyChange) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }
}

/// An event as it is now. Its chart never changes.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its number in the ledger.
    pub no: EventNo,
    pub id: EventId,
    pub name: Text,
    pub starts_at: Option<Timestamp>,
    pub currency: Currency,
    pub chart: Arc<Chart>,
    /// Price of each category, by the category's number.
    pub prices: Vec<Amount>,
    pub policy: Policy,
    pub state: EventState,
    pub created_at: Timestamp,
    /// SHA-256 of the request that created it.
    pub fingerprint: [u8; 32],
}

impl Event {
    /// Builds the event that `new` asks for.
    ///
    /// # Errors
    /// [`Invalid`] for a blank name, a policy out of bounds, a category without price or a price without category.
    pub fn create(no: EventNo, new: &NewEvent, now: Timestamp) -> Result<Self, Invalid> {
        require_name(&new.name)?;
        new.policy.validate()?;
        new.policy.require_sale(new.starts_at)?;
        Ok(Self {
            no,
            id: new.id.clone(),
            name: new.name.clone(),
            starts_at: new.starts_at,
            currency: new.currency,
            chart: Arc::clone(&new.chart),
            prices: prices_by_number(&new.chart, &new.prices)?,
            policy: new.policy.clone(),
            state: EventState::Open,
            created_at: now,
            fingerprint: new.fingerprint,
        })
    }

    /// Returns the event with these fields set. Those who hold and those who bought keep what they have.
    ///
    /// # Errors
    /// [`Invalid`] for a blank name, and where the change makes it so: a policy out of bounds, a start at which its
    /// sale has not opened yet.
    pub fn changed(&self, change: &EventChange) -> Result<Self, Invalid> {
        change.name.as_ref().map_or(Ok(()), require_name)?;
        let name = change.name.as_ref().unwrap_or(&self.name);
        let changed = Self {
            name: name.clone(),
            starts_at: change.starts_at.or(self.starts_at),
            policy: self.policy.changed(&change.policy)?,
            ..self.clone()
        };
        if self.policy.require_sale(self.starts_at).is_ok() {
            changed.policy.require_sale(changed.starts_at)?;
        }
        Ok(changed)
    }

    /// Returns the reason that staff gave when the event was called off; none if it was not.
    pub fn cancelled(&self) -> Option<&Text> {
        match &self.state {
            EventState::Open => None,
            EventState::Cancelled(reason) => Some(reason),
        }
    }

    /// Returns the price of a category of this event's chart.
    ///
    /// # Panics
    /// When the chart has no such category: nothing is sold for nothing by mistake.
    pub fn price(&self, category: CategoryNo) -> Amount {
        let price = self.prices.get(category.index());
        *price.expect("an event has a price for each category of its chart")
    }

    /// Checks that the event sells at `now`: open, and inside its sale window.
    ///
    /// # Errors
    /// `NotOnSale`, with the time at which the sale opens, if it will.
    pub fn require_on_sale(&self, now: Timestamp) -> Result<(), Rejection> {
        let end = self.policy.sale_closes_at.of(self.starts_at);
        let closed = end.is_some_and(|end| end <= now);
        if closed || self.state != EventState::Open {
            return Err(Rejection::NotOnSale { opens_at: None });
        }
        match self.policy.sale_opens_at {
            Some(opens) if now < opens => Err(Rejection::NotOnSale {
                opens_at: Some(opens),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns from when on it is over: its sale has closed and it has started. A cancelled one
    /// counts as over from its creation on. `None` if it never ends.
    fn over_at(&self) -> Option<Timestamp> {
        match self.state {
            EventState::Cancelled(_) => Some(self.created_at),
            EventState::Open => {
                let closes = self.policy.sale_closes_at.of(self.starts_at)?;
                Some(self.starts_at.map_or(closes, |starts| starts.max(closes)))
            }
        }
    }

    /// Checks that the event can be dropped at `now`: it is over and unchanged for `keep`, at least
    /// [`DROP_AFTER_MS_MIN`], and has no open holds, bookings, effects or deliveries.
    ///
    /// # Errors
    /// `EventNotOver`, `EventInUse`.
    pub fn require_droppable(
        &self,
        now: Timestamp,
        found: EventUse,
        keep: Span,
    ) -> Result<(), Rejection> {
        let keep = keep.max(Span::from_ms(DROP_AFTER_MS_MIN));
        let at = self.over_at();
        let at = at.map(|over| over.max(found.last_commit).plus(keep));
        match at {
            Some(at) if at <= now && found.open == 0 => Ok(()),
            Some(at) if at <= now => Err(Rejection::EventInUse),
            Some(_) | None => Err(Rejection::EventNotOver(at)),
        }
    }
}

fn require_name(name: &Text) -> Result<(), Invalid> {
    if name.is_blank() {
        let text = "it is blank, and people know an event by it".to_owned();
        return Err(Invalid::new("name", text));
    }
    Ok(())
}

fn prices_by_number(
    chart: &Chart,
    prices: &BTreeMap<String, Amount>,
) -> Result<Vec<Amount>, Invalid> {
    let refuse = |text: String| Invalid::new("prices", text);
    let known = chart.categories();
    let is_unknown = |name: &&String| known.iter().all(|known| known != *name);
    if let Some(name) = prices.keys().find(is_unknown) {
        return Err(refuse(format!("the chart has no category `{name}`")));
    }
    let price = |name: &String| match prices.get(name) {
        None => Err(refuse(format!("category `{name}` has no price"))),
        Some(price) if Amount::price(price.minor()).is_none() => {
            let price = price.minor();
            let text = format!("{price} is outside 0 ..= {PRICE_MAX} for `{name}`");
            Err(refuse(text))
        }
        Some(price) => Ok(*price),
    };
    known.iter().map(price).collect()
}
