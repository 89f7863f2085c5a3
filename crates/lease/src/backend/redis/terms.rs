//! What most acquires of a batch have in common, so that each needs to say little of its own.

use std::time::Duration;

use redis::Cmd;

use crate::backend::{Acquire, Waiter};
use crate::timing::millis;
use crate::{FencingToken, Owner};

/// On what terms a grant is asked for. Those of most items are written once for a batch.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Terms {
    ttl: Duration,
    cap: Option<Duration>,
    floor: u64,
}

impl Terms {
    pub(super) fn of(ask: &Acquire) -> Self {
        Self {
            ttl: ask.ttl,
            cap: ask.cap,
            floor: ask.floor.map_or(0, FencingToken::number),
        }
    }

    pub(super) fn write(self, command: &mut Cmd) {
        command
            .arg(millis(self.ttl))
            .arg(self.cap.map_or(0, millis))
            .arg(self.floor);
    }
}

/// One item of a batch of acquires: short if it wants one name on the common terms.
pub(super) fn item(command: &mut Cmd, ask: &Acquire, common: Terms) {
    let names = &ask.names;
    let terms = Terms::of(ask);
    let is_plain = names.group().is_none() && names.as_slice().len() == 1;
    let asks_more = ask.fair || ask.waiter.is_some() || !ask.meta.is_empty();
    if is_plain && !asks_more && terms == common {
        command.arg(hex(ask.owner));
        return;
    }
    let fair = match (names.group(), ask.fair) {
        (Some(_), _) => "",
        (None, false) => "0",
        (None, true) => "1",
    };
    let count = names.as_slice().len();
    command.arg("+").arg(hex(ask.owner)).arg(count);
    terms.write(command);
    command.arg(waiter(ask.waiter)).arg(fair).arg(&*ask.meta);
}

pub(super) fn hex(owner: Owner) -> String {
    format!("{:032x}", u128::from_be_bytes(owner.expose()))
}

pub(super) fn waiter(waiter: Option<Waiter>) -> String {
    waiter
        .map(|Waiter(id)| format!("{id:016x}"))
        .unwrap_or_default()
}
