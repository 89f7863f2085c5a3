//! What can be asked of an inventory. Ids are minted and names resolved before a command is made;
//! `now` comes with it.

use std::sync::Arc;

use crate::{
    Amount, BookingId, CallerId, CategoryNo, EventNo, Fence, GivenLines, HoldId, Holder, NewEvent,
    PaymentReport, PolicyChange, Selection, Span, Text, UnitNo,
};

/// By what right a command acts on a hold or a booking (api.md 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// An admin key.
    Staff,
    /// The caller that created it.
    Caller(CallerId),
    /// Somebody who proved the hold's secret.
    Secret,
}

/// Who did it, for the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// An API key or a session.
    Caller(CallerId),
    /// The engine itself: the sweeper, the clock.
    System,
}

/// Who asked, and in which request: written beside every transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Who did it.
    pub actor: Actor,
    /// The request's id.
    pub request: Arc<str>,
}

impl Origin {
    /// The engine's own doing.
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
    /// If it can be had.
    #[default]
    Preferred,
    /// Or nothing.
    Required,
}

/// Units to be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// These.
    Named(Selection),
    /// The best free ones.
    Best {
        /// How many.
        quantity: u32,
        /// Of which price class; none is any.
        category: Option<CategoryNo>,
        /// Whether they must be neighbours.
        together: Together,
    },
}

impl Wish {
    /// How many units it asks for.
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
    /// Of which event.
    pub event: EventNo,
    /// Its name, fresh.
    pub hold: HoldId,
    /// For whom.
    pub holder: Holder,
    /// Which units.
    pub wish: Wish,
    /// For how long; none is the policy's.
    pub ttl: Option<Span>,
    /// The longest this caller may ask for; none is the policy's cap.
    pub ttl_max: Option<Span>,
}

/// Which hold, by what right, under which fence: what every command on a hold begins with.
#[derive(Clone, Copy, Debug)]
pub struct OnHold {
    /// Which hold.
    pub hold: HoldId,
    /// By what right.
    pub by: Authority,
    /// The fence the caller knows; none skips the check.
    pub fence: Option<Fence>,
}

/// The arguments of [`Command::Change`].
#[derive(Clone, Debug)]
pub struct Change {
    /// Which hold.
    pub on: OnHold,
    /// Units to take.
    pub add: Selection,
    /// Seats, and places by number, to give up. Sorted and distinct.
    pub drop: Vec<UnitNo>,
    /// Places to give up by area and quantity.
    pub drop_places: Selection,
}

/// Who sees to it that an exchange which costs more is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Nobody yet: it takes a checkout of the hold.
    Unpaid,
    /// The caller.
    Vouched,
}

/// A command. Each is decided in one step, all or nothing.
#[derive(Clone, Debug)]
pub enum Command {
    /// Create an event; the same again is answered with the event.
    CreateEvent(Box<NewEvent>),
    /// Set fields of an event's policy.
    UpdatePolicy {
        /// Which event.
        event: EventNo,
        /// The fields to be set: changes of different fields do not undo each other.
        change: Box<PolicyChange>,
    },
    /// Call an event off and revoke its holds.
    CancelEvent {
        /// Which event.
        event: EventNo,
        /// Why.
        reason: Text,
    },
    /// Hold units.
    Hold(NewHold),
    /// Add units to a hold and drop units from it.
    Change(Box<Change>),
    /// Push a hold's end later.
    Extend {
        /// Which hold.
        on: OnHold,
        /// From now, so long; none is the policy's.
        ttl: Option<Span>,
        /// The longest this caller may ask for; none is the policy's cap.
        ttl_max: Option<Span>,
    },
    /// Begin payment: pin the hold and open a booking.
    Checkout {
        /// Which hold.
        on: OnHold,
        /// The booking's name, fresh.
        booking: BookingId,
        /// The caller's own text for it.
        reference: Option<Text>,
        /// Sold lines to give back for it: then only the difference is paid.
        exchange: Option<GivenLines>,
    },
    /// End a payment that the buyer gave up.
    Abandon {
        /// Which hold.
        on: OnHold,
    },
    /// Take note of what the provider says about a payment, and of all that follows from it.
    Payment(Box<PaymentReport>),
    /// End a hold by its holder.
    Release {
        /// Which hold.
        on: OnHold,
    },
    /// End a hold by staff.
    Revoke {
        /// Which hold.
        hold: HoldId,
        /// Why.
        reason: Text,
    },
    /// Write down holds that the clock has ended, at most so many.
    Sweep {
        /// How many at most.
        limit: usize,
    },
    /// Turn a hold into a booking without a provider.
    Confirm {
        /// Which hold.
        on: OnHold,
        /// The booking's name, fresh.
        booking: BookingId,
        /// The caller's own text for it.
        reference: Option<Text>,
    },
    /// As [`Command::Confirm`], for callers who cannot vouch for money: only what costs nothing.
    ConfirmFree {
        /// Which hold.
        on: OnHold,
        /// The booking's name, fresh.
        booking: BookingId,
        /// The caller's own text for it.
        reference: Option<Text>,
    },
    /// Sell free units at once.
    Sell {
        /// Of which event.
        event: EventNo,
        /// Which units.
        selection: Selection,
        /// For whom.
        holder: Holder,
        /// The booking's name, fresh.
        booking: BookingId,
        /// The caller's own text for it.
        reference: Option<Text>,
    },
    /// Give back lines of a booking.
    Cancel {
        /// Which booking.
        booking: BookingId,
        /// By what right.
        by: Authority,
        /// Which lines.
        lines: LineChoice,
    },
    /// Send back money of a booking that keeps its units.
    Refund {
        /// Which booking.
        booking: BookingId,
        /// How much.
        amount: Amount,
    },
    /// Swap lines of a booking for the units of a hold.
    Exchange {
        /// The lines to give back.
        given: GivenLines,
        /// The hold with the new units.
        on: OnHold,
        /// Whether they may cost more.
        difference: Difference,
    },
    /// Take free units out of sale.
    Block {
        /// Of which event.
        event: EventNo,
        /// Which units. Sorted and distinct.
        selection: Selection,
        /// Why.
        reason: Text,
    },
    /// Put blocked units back on sale.
    Unblock {
        /// Of which event.
        event: EventNo,
        /// Which units.
        selection: Selection,
        /// Why.
        reason: Text,
    },
}

/// Lines of a booking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineChoice {
    /// All that are not cancelled.
    All,
    /// These units, and so many places of these areas.
    Some {
        /// Units by number. Sorted and distinct.
        units: Vec<UnitNo>,
        /// Places by area and quantity.
        places: Selection,
    },
}
