//! The commands of an inventory. Ids are minted and names resolved before a command is made;
//! `now` comes with it.

use std::sync::Arc;

use crate::{
    Amount, BookingId, CallerId, CategoryNo, EventChange, EventNo, Fence, GivenLines, HoldId,
    Holder, NewEvent, PaymentReport, Selection, Span, Text, TtlMax, UnitNo,
};

/// The right by which a command acts on a hold or a booking (api.md 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// An admin key.
    Staff,
    /// The caller that created it.
    Caller(CallerId),
    /// A caller that proved the hold's secret.
    Secret,
}

impl Authority {
    /// Tells whether it is a right over what `owner` has.
    pub fn may_act_for(self, owner: &Holder) -> bool {
        match self {
            Self::Staff | Self::Secret => true,
            Self::Caller(caller) => caller == owner.caller,
        }
    }
}

/// Who gave a command, for the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// An API key or a session.
    Caller(CallerId),
    /// The engine itself: the sweeper, the clock.
    System,
}

/// Who asked, and in which request: written with every transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub actor: Actor,
    pub request: Arc<str>,
}

impl Origin {
    /// Returns the origin of a step of the engine itself.
    pub fn system(what: &str) -> Self {
        Self {
            actor: Actor::System,
            request: what.into(),
        }
    }
}

/// Whether the engine's pick must be neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Together {
    /// Neighbours if possible.
    #[default]
    Preferred,
    /// Neighbours or a refusal.
    Required,
}

/// Units to be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Named(Selection),
    Best {
        quantity: u32,
        /// Their price class; `None` is any.
        category: Option<CategoryNo>,
        together: Together,
    },
}

impl Wish {
    pub fn count(&self) -> u32 {
        match self {
            Self::Named(selection) => selection.count(),
            Self::Best { quantity, .. } => *quantity,
        }
    }
}

/// The arguments of [`Command::Hold`].
#[derive(Clone, Debug)]
pub struct NewHold {
    pub event: EventNo,
    pub hold: HoldId,
    pub holder: Holder,
    pub wish: Wish,
    /// The time to live; `None` is the policy's.
    pub ttl: Option<Span>,
    pub ttl_max: TtlMax,
}

/// A hold, the right to act on it, and its fence: the target of every command on a hold.
#[derive(Clone, Copy, Debug)]
pub struct OnHold {
    pub hold: HoldId,
    pub by: Authority,
    /// The fence the caller knows; `None` skips the check.
    pub fence: Option<Fence>,
}

/// The arguments of [`Command::Change`].
#[derive(Clone, Debug)]
pub struct Change {
    pub on: OnHold,
    pub add: Selection,
    /// Seats, and places by number, to give up. Sorted and distinct.
    pub drop: Vec<UnitNo>,
    /// Places to give up by area and quantity.
    pub drop_places: Selection,
}

/// Who ensures that the price difference of an exchange is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Not ensured yet: it takes a checkout of the hold.
    Unpaid,
    /// The caller vouches for it.
    Vouched,
}

/// A command. Each is decided in one step, all or nothing.
#[derive(Clone, Debug)]
pub enum Command {
    /// Create an event; the same again is answered with the event.
    CreateEvent(Box<NewEvent>),
    /// Set fields of an event and of its policy.
    UpdateEvent {
        event: EventNo,
        /// The fields to be set: changes of different fields do not undo each other.
        change: Box<EventChange>,
    },
    /// Cancel an event and revoke its holds; the sweeper writes down those that are too many for one commit.
    CancelEvent {
        event: EventNo,
        reason: Text,
    },
    Hold(NewHold),
    Change(Box<Change>),
    Extend {
        on: OnHold,
        /// The time to live from now; `None` is the policy's.
        ttl: Option<Span>,
        ttl_max: TtlMax,
    },
    /// Begin payment: pin the hold and open a booking.
    Checkout {
        on: OnHold,
        booking: BookingId,
        reference: Option<Text>,
        /// Sold lines to give back for it: then only the difference is paid.
        exchange: Option<GivenLines>,
    },
    /// End a payment that the buyer gave up.
    Abandon {
        on: OnHold,
        /// The booking of that payment, so that a later one goes on; `None` for the one under way.
        booking: Option<BookingId>,
    },
    /// Record what the provider says about a payment, and all that follows from it.
    Payment(Box<PaymentReport>),
    Release {
        on: OnHold,
    },
    Revoke {
        hold: HoldId,
        reason: Text,
    },
    /// Write down holds that are over, by the clock or with their event, until they have `limit` units.
    Sweep {
        limit: usize,
    },
    /// Turn a hold into a booking without a provider.
    Confirm {
        on: OnHold,
        booking: BookingId,
        reference: Option<Text>,
    },
    /// As [`Command::Confirm`], for callers that cannot vouch for money: only what costs nothing.
    ConfirmFree {
        on: OnHold,
        booking: BookingId,
        reference: Option<Text>,
    },
    Sell {
        event: EventNo,
        selection: Selection,
        holder: Holder,
        booking: BookingId,
        reference: Option<Text>,
    },
    Cancel {
        booking: BookingId,
        by: Authority,
        lines: LineChoice,
    },
    /// Refund money of a booking that keeps its units.
    Refund {
        booking: BookingId,
        amount: Amount,
    },
    /// Record that staff settled elsewhere what is still to be refunded, all of it.
    SettleRefund {
        booking: BookingId,
        amount: Amount,
    },
    /// Swap lines of a booking for the units of a hold.
    Exchange {
        given: GivenLines,
        on: OnHold,
        /// Whether the new units may cost more.
        difference: Difference,
    },
    Block {
        event: EventNo,
        /// The units, sorted and distinct.
        selection: Selection,
        reason: Text,
    },
    Unblock {
        event: EventNo,
        selection: Selection,
        reason: Text,
    },
}

/// Lines of a booking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineChoice {
    All,
    /// These units, and so many places of these areas.
    Some {
        /// Units by number. Sorted and distinct.
        units: Vec<UnitNo>,
        /// Places by area and quantity.
        places: Selection,
    },
}
