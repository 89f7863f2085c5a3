//! What callers are told of what they asked for. Anything but an answer and `Unknown` is wrong.

use std::time::Duration;

use soldonce_lease::{AcquireError, BackendError, Lease, RenewError, Unsettled};
use tokio::task::JoinSet;

/// What the caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Done,
    Unknown,
}

pub(super) fn acquired(answers: Vec<Result<Lease, AcquireError>>) -> (Heard, Vec<Lease>) {
    let (mut held, mut heard) = (Vec::new(), Heard::Done);
    for answer in answers {
        match answer {
            Ok(lease) => held.push(lease),
            Err(AcquireError::Unknown { .. }) => heard = Heard::Unknown,
            Err(other) => panic!("{other:?}"),
        }
    }
    (heard, held)
}

pub(super) fn heard_renewal(answer: Result<Duration, RenewError>) -> Heard {
    match answer {
        Ok(_) => Heard::Done,
        Err(RenewError::Unknown) => Heard::Unknown,
        Err(other) => panic!("{other:?}"),
    }
}

pub(super) fn heard_answer<T: std::fmt::Debug>(answer: Result<T, BackendError>) -> Heard {
    match answer {
        Ok(_) => Heard::Done,
        Err(BackendError::Unknown(_)) => Heard::Unknown,
        Err(other) => panic!("{other:?}"),
    }
}

pub(super) async fn released(held: Vec<Lease>) -> Heard {
    let mut asked = JoinSet::new();
    for lease in held {
        asked.spawn(lease.release());
    }
    let outcomes = asked.join_all().await;
    let unsettled = outcomes.contains(&Err(Unsettled));
    if unsettled {
        Heard::Unknown
    } else {
        Heard::Done
    }
}
