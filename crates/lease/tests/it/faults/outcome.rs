//! What callers are told of what they asked for. Anything but an answer and `Unknown` is wrong.

use std::time::Duration;

use soldonce_lease::{AcquireError, BackendError, Lease, RenewError, Unsettled};
use tokio::task::JoinSet;

/// What the caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    Done,
    Unknown,
}

pub(super) fn acquired(answers: Vec<Result<Lease, AcquireError>>) -> (CallOutcome, Vec<Lease>) {
    let (mut held, mut outcome) = (Vec::new(), CallOutcome::Done);
    for answer in answers {
        match answer {
            Ok(lease) => held.push(lease),
            Err(AcquireError::Unknown { .. }) => outcome = CallOutcome::Unknown,
            Err(other) => panic!("{other:?}"),
        }
    }
    (outcome, held)
}

pub(super) fn renewal_outcome(answer: Result<Duration, RenewError>) -> CallOutcome {
    match answer {
        Ok(_) => CallOutcome::Done,
        Err(RenewError::Unknown) => CallOutcome::Unknown,
        Err(other) => panic!("{other:?}"),
    }
}

pub(super) fn answer_outcome<T: std::fmt::Debug>(answer: Result<T, BackendError>) -> CallOutcome {
    match answer {
        Ok(_) => CallOutcome::Done,
        Err(BackendError::Unknown(_)) => CallOutcome::Unknown,
        Err(other) => panic!("{other:?}"),
    }
}

pub(super) async fn released(held: Vec<Lease>) -> CallOutcome {
    let mut asked = JoinSet::new();
    for lease in held {
        asked.spawn(lease.release());
    }
    let outcomes = asked.join_all().await;
    let unsettled = outcomes.contains(&Err(Unsettled));
    if unsettled {
        CallOutcome::Unknown
    } else {
        CallOutcome::Done
    }
}
