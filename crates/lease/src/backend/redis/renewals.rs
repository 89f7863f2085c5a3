//! Reads what the renew script answered: for each grant the worst of its keys.

use redis::Value;

use super::call::RenewPart;
use super::reply::{Fields, odd, span, token};
use crate::BackendError;
use crate::backend::{Renew, RenewReply};

/// One reply for each renewal of the batch; `answers` are those of its parts.
pub(super) fn all(
    batch: &[Renew],
    parts: &[RenewPart],
    answers: Vec<Result<Value, BackendError>>,
) -> Vec<RenewReply> {
    let mut replies = vec![RenewReply::Failed(odd()); batch.len()];
    for (part, answer) in parts.iter().zip(answers) {
        let mut fields = answer.and_then(Fields::of);
        for &(at, keys) in &part.grants {
            let reply = match &mut fields {
                Ok(fields) => renewal(fields, keys).unwrap_or_else(RenewReply::Failed),
                Err(error) => RenewReply::Failed(error.clone()),
            };
            if let Some(place) = replies.get_mut(at) {
                *place = reply;
            }
        }
    }
    replies
}

/// The worst of a grant's keys decides: another's is worse than gone, gone worse than capped. Of
/// several others the one with the highest token is told.
fn renewal(fields: &mut Fields, keys: usize) -> Result<RenewReply, BackendError> {
    let (mut least, mut worst) = (None, None);
    for _ in 0..keys {
        let (code, by) = (fields.int()?, fields.text()?);
        let reply = match code {
            -1 => Some(RenewReply::Taken { by: token(&by)? }),
            0 => Some(RenewReply::Gone),
            -2 => Some(RenewReply::Capped),
            millis if millis > 0 => {
                least = Some(least.map_or(millis, |least: i64| least.min(millis)));
                None
            }
            _ => return Err(odd()),
        };
        worst = worse(worst, reply);
    }
    let renewed = least.map(|least| RenewReply::Renewed {
        granted: span(least),
    });
    Ok(worst.or(renewed).unwrap_or(RenewReply::Gone))
}

fn worse(one: Option<RenewReply>, other: Option<RenewReply>) -> Option<RenewReply> {
    let rank = |reply: &Option<RenewReply>| match reply {
        Some(RenewReply::Taken { by }) => (3, Some(*by)),
        Some(RenewReply::Gone) => (2, None),
        Some(RenewReply::Capped) => (1, None),
        Some(RenewReply::Renewed { .. } | RenewReply::Failed(_)) | None => (0, None),
    };
    if rank(&other) > rank(&one) {
        other
    } else {
        one
    }
}
