//! What a command names that must be in memory before it is decided.

use soldonce_core::{BookingId, Command, HoldId, LineChoice};

/// What a command names that a ledger may have let go of. With a booking come those whose lines were
/// given back for it ([`Inventory::exchanges`](soldonce_core::Inventory::exchanges)): their money is its money too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Named {
    /// The hold it acts on.
    pub(crate) hold: Option<HoldId>,
    /// The booking it acts on.
    pub(crate) booking: Option<BookingId>,
}

/// The hold and the booking that must be in memory before `command` is decided.
pub(crate) fn named(command: &Command) -> Named {
    let hold = |hold: HoldId| Named {
        hold: Some(hold),
        booking: None,
    };
    let booking = |booking: BookingId| Named {
        hold: None,
        booking: Some(booking),
    };
    match command {
        Command::Change(change) => hold(change.on.hold),
        Command::Checkout { on, exchange, .. } => Named {
            hold: Some(on.hold),
            booking: exchange.as_ref().map(|given| given.booking),
        },
        Command::Extend { on, .. }
        | Command::Abandon { on }
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
        Command::Exchange { given, on, .. } => Named {
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
        | Command::Unblock { .. } => Named::default(),
    }
}
