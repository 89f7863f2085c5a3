//! Reads the scripts' answers. An answer of an unknown form is `Unknown`: the script has run.

use std::time::Duration;

use redis::Value;

use super::call::RenewPart;
use crate::backend::{Acquire, AcquireReply, Holder, ReleaseReply, Renew, RenewReply};
use crate::{BackendError, Conflict, FencingToken, Owner, Refusal, Tag};

/// What the acquire script answered.
pub(super) enum Answer {
    Reply(AcquireReply),
    /// It needs an epoch above this one, installed with this ask.
    Epoch {
        above: u32,
        ask: String,
    },
}

fn odd() -> BackendError {
    BackendError::Unknown("the answer has an unknown form".to_owned())
}

/// The fields of an answer, in order.
struct Fields(std::vec::IntoIter<Value>);

impl Fields {
    fn of(value: Value) -> Result<Self, BackendError> {
        if let Value::Array(fields) = value {
            return Ok(Self(fields.into_iter()));
        }
        Err(odd())
    }

    fn is_done(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn int(&mut self) -> Result<i64, BackendError> {
        match self.0.next() {
            Some(Value::Int(number)) => Ok(number),
            _ => Err(odd()),
        }
    }

    fn text(&mut self) -> Result<String, BackendError> {
        match self.0.next() {
            Some(Value::BulkString(bytes)) => String::from_utf8(bytes).map_err(|_| odd()),
            _ => Err(odd()),
        }
    }

    fn span(&mut self) -> Result<Duration, BackendError> {
        self.int().map(span)
    }

    fn token(&mut self) -> Result<FencingToken, BackendError> {
        token(&self.text()?)
    }
}

/// Milliseconds of the server. A key without a ttl answers -1; it is treated as ended.
fn span(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

fn token(digits: &str) -> Result<FencingToken, BackendError> {
    let number = digits.parse().map_err(|_| odd())?;
    FencingToken::new(number, Tag::default()).ok_or_else(odd)
}

/// The answers to a batch: one for each of `asked`.
pub(super) fn acquires(value: Value, asked: &[Acquire]) -> Vec<Result<Answer, BackendError>> {
    let answers = asked.iter().zip(each(value, asked.len()));
    answers.map(|(ask, answer)| acquire(answer?, ask)).collect()
}

/// The answers of a script to the items of a batch.
fn each(value: Value, items: usize) -> Vec<Result<Value, BackendError>> {
    if let Value::Array(answers) = value
        && answers.len() == items
    {
        return answers.into_iter().map(Ok).collect();
    }
    vec![Err(odd()); items]
}

fn acquire(value: Value, command: &Acquire) -> Result<Answer, BackendError> {
    let mut fields = Fields::of(value)?;
    match fields.int()? {
        2 => {
            let above = u32::try_from(fields.int()?).map_err(|_| odd())?;
            let ask = fields.text()?;
            Ok(Answer::Epoch { above, ask })
        }
        7 => Err(BackendError::Rejected {
            code: fields.text()?,
            message: fields.text()?,
        }),
        code => told(code, &mut fields, command).map(Answer::Reply),
    }
}

/// What one node of a Redlock answered.
#[cfg(feature = "redlock")]
pub(super) enum Vote {
    Reply(AcquireReply),
    /// This token was granted before, and ours is not above it.
    TooLow(FencingToken),
    /// The server started so long ago, which is too short.
    Young(Duration),
}

#[cfg(feature = "redlock")]
pub(super) fn vote(value: Value, command: &Acquire) -> Result<Vote, BackendError> {
    let mut fields = Fields::of(value)?;
    Ok(match fields.int()? {
        5 => Vote::TooLow(fields.token()?),
        6 => Vote::Young(fields.span()?),
        code => Vote::Reply(told(code, &mut fields, command)?),
    })
}

/// The answers that both scripts share.
fn told(code: i64, fields: &mut Fields, command: &Acquire) -> Result<AcquireReply, BackendError> {
    Ok(match code {
        0 => AcquireReply::Refused(refusal(fields, command)?),
        1 => AcquireReply::Granted {
            token: fields.token()?,
            granted: fields.span()?,
            again: fields.int()? == 1,
            replicas: None,
        },
        3 => AcquireReply::CapReached,
        4 => AcquireReply::QueueFull,
        _ => return Err(odd()),
    })
}

fn refusal(fields: &mut Fields, command: &Acquire) -> Result<Refusal, BackendError> {
    let mut conflicts = Vec::new();
    while !fields.is_done() {
        let index = usize::try_from(fields.int()?).map_err(|_| odd())?;
        let name = command.names.as_slice().get(index).ok_or_else(odd)?;
        conflicts.push(Conflict {
            name: name.clone(),
            remaining: fields.span()?,
            token: fields.token()?,
        });
    }
    let longest = conflicts.iter().map(|conflict| conflict.remaining).max();
    Ok(Refusal {
        conflicts,
        retry_after: longest.unwrap_or_default(),
        queued: command.fair && command.waiter.is_some(),
    })
}

/// `None` when it was installed, else the epoch that stands there.
pub(super) fn install(value: Value) -> Result<Option<u32>, BackendError> {
    let mut fields = Fields::of(value)?;
    let installed = fields.int()? == 1;
    let epoch = u32::try_from(fields.int()?).map_err(|_| odd())?;
    Ok((!installed).then_some(epoch))
}

/// One reply for each renewal of the batch; `answers` are those of its parts.
pub(super) fn renewals(
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

/// The answers to a batch of so many releases.
pub(super) fn releases(value: Value, items: usize) -> Vec<Result<ReleaseReply, BackendError>> {
    let answers = each(value, items).into_iter();
    answers.map(|answer| release(answer?)).collect()
}

/// The worst of a grant's names decides: another's is worse than gone. Of several others the one
/// with the highest token is told.
fn release(value: Value) -> Result<ReleaseReply, BackendError> {
    let mut fields = Fields::of(value)?;
    let (mut gone, mut taken) = (false, None);
    while !fields.is_done() {
        let (code, by) = (fields.int()?, fields.text()?);
        match code {
            1 => {}
            2 => gone = true,
            3 => taken = taken.max(Some(token(&by)?)),
            _ => return Err(odd()),
        }
    }
    Ok(match (taken, gone) {
        (Some(by), _) => ReleaseReply::Taken { by },
        (None, true) => ReleaseReply::Gone,
        (None, false) => ReleaseReply::Released,
    })
}

pub(super) fn inspect(value: Value) -> Result<Option<Holder>, BackendError> {
    let mut fields = Fields::of(value)?;
    if fields.is_done() {
        return Ok(None);
    }
    let (value, remaining, now) = (fields.text()?, fields.span()?, fields.int()?);
    let mut parts = value.splitn(5, '|');
    let mut part = || parts.next().ok_or_else(odd);
    let owner = u128::from_str_radix(part()?, 16).map_err(|_| odd())?;
    let token = token(part()?)?;
    let cap_at: i64 = part()?.parse().map_err(|_| odd())?;
    let born: i64 = part()?.parse().map_err(|_| odd())?;
    Ok(Some(Holder {
        owner: Owner::from_bits(owner.to_be_bytes()),
        token,
        held: span(now.saturating_sub(born)),
        remaining,
        cap: (cap_at > 0).then(|| span(cap_at.saturating_sub(now))),
        meta: part()?.to_owned(),
    }))
}

/// The number that `WAIT` answered.
pub(super) fn count(value: &Value) -> Option<u32> {
    if let Value::Int(number) = value {
        return u32::try_from(*number).ok();
    }
    None
}
