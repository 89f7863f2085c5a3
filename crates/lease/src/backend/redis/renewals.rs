//! Reads the answers of the renew script: for each grant the worst of its keys.

use redis::Value;

use super::call::RenewPart;
use super::reply::{Fields, odd, span, token};
use crate::BackendError;
use crate::backend::worst::OfName;
use crate::backend::{Renew, RenewReply};

/// Reads one reply for each renewal of the batch; `answers` are those of its `parts`.
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

fn renewal(fields: &mut Fields, keys: usize) -> Result<RenewReply, BackendError> {
    let mut worst = None;
    for _ in 0..keys {
        let (code, by) = (fields.int()?, fields.text()?);
        let key = match code {
            -1 => OfName::Taken(token(&by)?),
            0 => OfName::Gone,
            -2 => OfName::Capped,
            millis if millis > 0 => OfName::Ours(span(millis)),
            _ => return Err(odd()),
        };
        worst = Some(worst.map_or(key, |before: OfName| before.or_worse(key)));
    }
    Ok(worst.unwrap_or(OfName::Gone).renewed())
}
