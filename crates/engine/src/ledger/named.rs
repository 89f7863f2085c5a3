//! What a command is about: an event, or a hold and a booking, which must be in memory before it is decided.

use soldonce_core::{BookingId, Command, EventNo, HoldId, LineChoice};

/// The ids that a command names; a ledger may have evicted their rows from memory. A booking needs
/// those whose lines were exchanged for it, too: it has their money
/// ([`Inventory::exchanges`](soldonce_core::Inventory::exchanges)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct NamedIds {
    pub(crate) hold: Option<HoldId>,
    pub(crate) booking: Option<BookingId>,
}

/// What a command is about.
pub(crate) enum Subject {
    NewEvent,
    Event(EventNo),
    /// A hold or a booking, and with them their event.
    Named(NamedIds),
    /// All that is overdue, in all events.
    All,
}

pub(crate) fn subject(command: &Command) -> Subject {
    let ids = |hold, booking| Subject::Named(NamedIds { hold, booking });
    match command {
        Command::CreateEvent(_) => Subject::NewEvent,
        Command::Sweep { .. } => Subject::All,
        Command::Hold(new) => Subject::Event(new.event),
        Command::UpdateEvent { event, .. }
        | Command::CancelEvent { event, .. }
        | Command::Sell { event, .. }
        | Command::Block { event, .. }
        | Command::Unblock { event, .. } => Subject::Event(*event),
        Command::Change(change) => ids(Some(change.on.hold), None),
        Command::Checkout { on, exchange, .. } => {
            ids(Some(on.hold), exchange.as_ref().map(|given| given.booking))
        }
        Command::Extend { on, .. }
        | Command::Abandon { on, .. }
        | Command::Release { on }
        | Command::Confirm { on, .. }
        | Command::ConfirmFree { on, .. } => ids(Some(on.hold), None),
        Command::Revoke { hold, .. } => ids(Some(*hold), None),
        Command::Exchange { given, on, .. } => ids(Some(on.hold), Some(given.booking)),
        Command::Payment(report) => ids(None, Some(report.booking)),
        Command::Cancel {
            booking,
            lines: LineChoice::All | LineChoice::Some { .. },
            ..
        }
        | Command::Refund { booking, .. }
        | Command::SettleRefund { booking, .. } => ids(None, Some(*booking)),
    }
}

/// Finds the ids of the hold and the booking that must be in memory before `command` is decided.
pub(crate) fn named(command: &Command) -> NamedIds {
    match subject(command) {
        Subject::Named(ids) => ids,
        Subject::NewEvent | Subject::Event(_) | Subject::All => NamedIds::default(),
    }
}
