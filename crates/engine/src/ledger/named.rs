//! The ids of the hold and the booking of a command: both must be in memory before it is decided.

use soldonce_core::{BookingId, Command, HoldId, LineChoice};

/// The ids that a command names; a ledger may have evicted their rows from memory. A booking needs
/// those whose lines were exchanged for it, too: it has their money
/// ([`Inventory::exchanges`](soldonce_core::Inventory::exchanges)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct NamedIds {
    pub(crate) hold: Option<HoldId>,
    pub(crate) booking: Option<BookingId>,
}

/// Finds the ids of the hold and the booking that must be in memory before `command` is decided.
pub(crate) fn named(command: &Command) -> NamedIds {
    let hold = |hold: HoldId| NamedIds {
        hold: Some(hold),
        booking: None,
    };
    let booking = |booking: BookingId| NamedIds {
        hold: None,
        booking: Some(booking),
    };
    match command {
        Command::Change(change) => hold(change.on.hold),
        Command::Checkout { on, exchange, .. } => NamedIds {
            hold: Some(on.hold),
            booking: exchange.as_ref().map(|given| given.booking),
        },
        Command::Extend { on, .. }
        | Command::Abandon { on, .. }
        | Command::Release { on }
        | Command::Confirm { on, .. }
        | Command::ConfirmFree { on, .. } => hold(on.hold),
        Command::Revoke { hold: id, .. } => hold(*id),
        Command::Payment(report) => booking(report.booking),
        Command::Cancel {
            booking: id,
            lines: LineChoice::All | LineChoice::Some { .. },
            ..
        }
        | Command::Refund { booking: id, .. } => booking(*id),
        Command::Exchange { given, on, .. } => NamedIds {
            hold: Some(on.hold),
            booking: Some(given.booking),
        },
        Command::CreateEvent(_)
        | Command::UpdatePolicy { .. }
        | Command::CancelEvent { .. }
        | Command::Hold(_)
        | Command::Sweep { .. }
        | Command::Sell { .. }
        | Command::Block { .. }
        | Command::Unblock { .. } => NamedIds::default(),
    }
}
