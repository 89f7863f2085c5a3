//! Reads the answers of scripts. One of an unknown form is `Unknown`: the script has run.

use std::time::Duration;

use redis::Value;

use super::call::RenewPart;
use crate::backend::worst::OfName;
use crate::backend::{Acquire, AcquireReply, Holder, Release, ReleaseReply, Renew, RenewReply};
use crate::{BackendError, Conflict, FencingToken, Name, Owner, Refusal};

pub(super) enum Answer {
    Reply(AcquireReply),
    /// The script for plain acquires leaves it to the one that serves every kind.
    Unusual,
    /// The record needs an epoch above this one, installed with this `ask`.
    Epoch {
        above: u32,
        ask: String,
    },
}

pub(super) fn odd() -> BackendError {
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

    fn is_text(&self) -> bool {
        matches!(self.0.as_slice().first(), Some(Value::BulkString(_)))
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

    /// Reads the name that was picked, if any one was asked for.
    fn picked(&mut self, command: &Acquire) -> Result<Option<Name>, BackendError> {
        if !command.names.is_any() {
            return Ok(None);
        }
        let index = usize::try_from(self.int()?).map_err(|_| odd())?;
        let name = command.names.as_slice().get(index);
        name.cloned().map(Some).ok_or_else(odd)
    }

    /// Reads the next item that was not granted, if there is one.
    fn refused(&mut self) -> Result<Option<Refused>, BackendError> {
        if self.is_done() {
            return Ok(None);
        }
        let index = usize::try_from(self.int()?).map_err(|_| odd())?;
        let (remaining, by) = (self.span()?, self.text()?);
        let held = match by.as_str() {
            "" => None,
            digits => Some((remaining, token(digits)?)),
        };
        Ok(Some(Refused { index, held }))
    }
}

/// An item that was not granted, with remaining life and token of the holder, if known.
struct Refused {
    index: usize,
    held: Option<(Duration, FencingToken)>,
}

/// Converts milliseconds of the server. A key without a ttl has -1, which counts as ended.
fn span(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

fn token(digits: &str) -> Result<FencingToken, BackendError> {
    FencingToken::new(number(digits)?).ok_or_else(odd)
}

fn number(digits: &str) -> Result<u64, BackendError> {
    digits.parse().map_err(|_| odd())
}

/// The token of all grants if fencing is off.
const NO_TOKEN: u64 = 1;

/// Reads the answers to plain acquires, one for each of `asked`.
pub(super) fn grants(value: Value, asked: &[Acquire]) -> Result<Vec<Answer>, BackendError> {
    let mut fields = Fields::of(value)?;
    if fields.is_done() {
        return Ok(asked.iter().map(|_| Answer::Unusual).collect());
    }
    let last = fields.text()?;
    let counts = !last.is_empty();
    let mut number = if counts { number(&last)? } else { NO_TOKEN };
    let mut answers = Vec::with_capacity(asked.len());
    let mut refused = fields.refused()?;
    for (at, command) in asked.iter().enumerate() {
        if let Some(Refused { held, .. }) = refused.take_if(|refused| refused.index == at) {
            answers.push(held.map_or(Answer::Unusual, |held| conflict(held, command)));
            refused = fields.refused()?;
        } else {
            number += u64::from(counts);
            answers.push(Answer::Reply(fresh(number, command)?));
        }
    }
    // An index that is out of order is left over.
    match (refused, fields.is_done()) {
        (None, true) => Ok(answers),
        (_, _) => Err(odd()),
    }
}

/// Builds the reply for a grant that the owner did not hold before.
fn fresh(number: u64, command: &Acquire) -> Result<AcquireReply, BackendError> {
    let ttl = command.ttl;
    Ok(AcquireReply::Granted {
        picked: None,
        token: FencingToken::new(number).ok_or_else(odd)?,
        granted: command.cap.map_or(ttl, |cap| ttl.min(cap)),
        again: false,
        replicas: None,
    })
}

/// Builds the refusal of a single name.
fn conflict((remaining, token): (Duration, FencingToken), command: &Acquire) -> Answer {
    let of = |name: &Name| Conflict::new(name.clone(), remaining, token);
    Answer::Reply(AcquireReply::Refused(Refusal {
        conflicts: command.names.as_slice().iter().map(of).collect(),
        retry_after: remaining,
        queued: false,
    }))
}

/// Reads the answer to an acquire of any kind.
pub(super) fn acquire(value: Value, command: &Acquire) -> Result<Answer, BackendError> {
    let mut fields = Fields::of(value)?;
    let fields = &mut fields;
    if fields.is_text() {
        let mut reply = fresh(number(&fields.text()?)?, command)?;
        if let AcquireReply::Granted { picked, .. } = &mut reply {
            *picked = fields.picked(command)?;
        }
        return Ok(Answer::Reply(reply));
    }
    Ok(Answer::Reply(match fields.int()? {
        1 => AcquireReply::Granted {
            token: fields.token()?,
            granted: fields.span()?,
            picked: fields.picked(command)?,
            again: true,
            replicas: None,
        },
        2 => {
            let above = u32::try_from(fields.int()?).map_err(|_| odd())?;
            let ask = fields.text()?;
            return Ok(Answer::Epoch { above, ask });
        }
        7 => AcquireReply::Failed(BackendError::Rejected {
            code: fields.text()?,
            message: fields.text()?,
        }),
        8 => AcquireReply::Refused(Refusal {
            conflicts: Vec::new(),
            retry_after: fields.span()?,
            queued: queued(command),
        }),
        code => told(code, fields, command)?,
    }))
}

/// Tells whether a refusal leaves the waiter a place in the queue.
fn queued(command: &Acquire) -> bool {
    command.fair && command.waiter.is_some()
}

#[cfg(feature = "redlock")]
pub(super) enum Vote {
    Reply(AcquireReply),
    /// This token was granted before, and the offered one is not above it.
    TooLow(FencingToken),
    /// The server started this long ago, which is too short for a vote.
    Young(Duration),
}

#[cfg(feature = "redlock")]
pub(super) fn vote(value: Value, command: &Acquire) -> Result<Vote, BackendError> {
    let mut fields = Fields::of(value)?;
    Ok(match fields.int()? {
        5 => Vote::TooLow(fields.token()?),
        6 => Vote::Young(fields.span()?),
        1 => Vote::Reply(AcquireReply::Granted {
            picked: None,
            token: fields.token()?,
            granted: fields.span()?,
            again: fields.int()? == 1,
            replicas: None,
        }),
        code => Vote::Reply(told(code, &mut fields, command)?),
    })
}

/// Reads the answers that both acquire scripts share.
fn told(code: i64, fields: &mut Fields, command: &Acquire) -> Result<AcquireReply, BackendError> {
    Ok(match code {
        0 => AcquireReply::Refused(refusal(fields, command)?),
        3 => AcquireReply::CapReached,
        4 => AcquireReply::QueueFull,
        _ => return Err(odd()),
    })
}

fn refusal(fields: &mut Fields, command: &Acquire) -> Result<Refusal, BackendError> {
    let count = usize::try_from(fields.int()?).map_err(|_| odd())?;
    let mut conflicts = Vec::new();
    for _ in 0..count {
        let index = usize::try_from(fields.int()?).map_err(|_| odd())?;
        let name = command.names.as_slice().get(index).ok_or_else(odd)?;
        let (remaining, token) = (fields.span()?, fields.token()?);
        conflicts.push(Conflict::new(name.clone(), remaining, token));
    }
    let longest = conflicts.iter().map(|conflict| conflict.remaining).max();
    Ok(Refusal {
        conflicts,
        retry_after: longest.unwrap_or_default(),
        queued: queued(command),
    })
}

/// Reads the answer to an install: `None` if it was installed, else the epoch that is stored.
pub(super) fn install(value: Value) -> Result<Option<u32>, BackendError> {
    let mut fields = Fields::of(value)?;
    let installed = fields.int()? == 1;
    let epoch = u32::try_from(fields.int()?).map_err(|_| odd())?;
    Ok((!installed).then_some(epoch))
}

/// Reads the answers to a batch of releases, one for each of `asked`.
pub(super) fn releases(value: Value, asked: &[Release]) -> Result<Vec<ReleaseReply>, BackendError> {
    let mut fields = Fields::of(value)?;
    let answers = asked.iter().map(|command| release(&mut fields, command));
    let answers = answers.collect::<Result<Vec<_>, _>>()?;
    fields.is_done().then_some(answers).ok_or_else(odd)
}

fn release(fields: &mut Fields, command: &Release) -> Result<ReleaseReply, BackendError> {
    let mut worst: Option<OfName> = None;
    for _ in command.names.as_slice() {
        let name = match fields.int()? {
            1 => OfName::Ours(Duration::ZERO),
            2 => OfName::Gone,
            3 => OfName::Taken(fields.token()?),
            _ => return Err(odd()),
        };
        worst = Some(worst.map_or(name, |before| before.or_worse(name)));
    }
    Ok(OfName::worst(worst).released())
}

/// Reads one reply for each renewal of the batch: for each grant the worst of its keys. `answers` are
/// those of its `parts`.
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

/// Parses the epoch of a fence record, which begins with the last token; 0 of any other text.
pub(super) fn epoch_of(record: &str) -> u32 {
    let last = record.split('|').next().unwrap_or_default();
    token(last).map_or(0, FencingToken::epoch)
}

/// Reads an answer that is an array of integers.
pub(super) fn integers(value: Value) -> Result<Vec<i64>, BackendError> {
    let mut fields = Fields::of(value)?;
    let mut integers = Vec::new();
    while !fields.is_done() {
        integers.push(fields.int()?);
    }
    Ok(integers)
}

/// Reads the number that `WAIT` answered.
pub(super) fn count(value: &Value) -> Option<u32> {
    if let Value::Int(number) = value {
        return u32::try_from(*number).ok();
    }
    None
}
