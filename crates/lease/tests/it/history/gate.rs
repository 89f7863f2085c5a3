//! One resource behind a gate: what was let in, and what was not.

use std::time::Duration;

use super::Violation;
use super::record::{History, Verdict, Write};
use super::search::{Failure, Model, Span, find_order};
use soldonce_lease::FencingToken;

/// Everything that is wrong with the writes to one resource.
pub(super) fn check(history: &History, resource: &str) -> Vec<Violation> {
    let mut writes: Vec<&Write> = history
        .writes
        .iter()
        .filter(|write| write.resource == resource)
        .collect();
    writes.sort_by_key(|write| write.invoked);
    let violations = stale_writes(&writes);
    if violations.is_empty() {
        GateModel::of(&writes).check(resource).into_iter().collect()
    } else {
        violations
    }
}

/// `writes` in the order of their calls.
fn stale_writes(writes: &[&Write]) -> Vec<Violation> {
    let mut admitted: Vec<(Duration, FencingToken)> = writes
        .iter()
        .filter_map(|write| match write.verdict {
            Verdict::Admitted { returned } => Some((returned, write.token)),
            Verdict::Stale { .. } | Verdict::Unknown => None,
        })
        .collect();
    admitted.sort_unstable();
    let mut admitted = admitted.into_iter().peekable();
    let mut highest = None;
    let mut violations = Vec::new();
    for write in writes {
        while let Some((_, token)) = admitted.next_if(|(returned, _)| *returned < write.invoked) {
            highest = highest.max(Some(token));
        }
        let was_admitted = matches!(write.verdict, Verdict::Admitted { .. });
        if let Some(higher) = highest.filter(|higher| was_admitted && *higher > write.token) {
            violations.push(Violation::StaleWrite {
                resource: write.resource.clone(),
                higher,
                write: Box::new((*write).clone()),
            });
        }
    }
    violations
}

/// The writes whose outcome is known, and the tokens of those whose is not.
struct GateModel {
    writes: Vec<(Span, FencingToken, Was)>,
    unknown: Vec<(Duration, FencingToken)>,
}

#[derive(Clone, Copy)]
enum Was {
    Admitted,
    Stale,
}

impl GateModel {
    fn of(writes: &[&Write]) -> Self {
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for write in writes {
            let (returned, was) = match write.verdict {
                Verdict::Admitted { returned } => (returned, Was::Admitted),
                Verdict::Stale { returned } => (returned, Was::Stale),
                Verdict::Unknown => {
                    unknown.push((write.invoked, write.token));
                    continue;
                }
            };
            let invoked = write.invoked;
            known.push((Span { invoked, returned }, write.token, was));
        }
        Self {
            writes: known,
            unknown,
        }
    }

    fn check(&self, resource: &str) -> Option<Violation> {
        let spans: Vec<Span> = self.writes.iter().map(|(span, ..)| *span).collect();
        let of = resource.to_owned();
        match find_order(self, &spans, None) {
            Ok(()) => None,
            Err(Failure::TooWide) => Some(Violation::TooWide { of }),
            Err(Failure::Stuck(op)) => {
                let stuck = spans.get(op).map(|span| span.invoked).unwrap_or_default();
                Some(Violation::NoOrder { of, stuck })
            }
        }
    }
}

impl Model for GateModel {
    /// The highest token that was let in for sure.
    type State = Option<FencingToken>;

    fn step(&self, highest: Self::State, op: usize, horizon: Duration) -> Option<Self::State> {
        let (_, token, was) = *self.writes.get(op)?;
        let above = |(from, other): &(Duration, FencingToken)| *from <= horizon && *other > token;
        match was {
            Was::Admitted => (highest <= Some(token)).then_some(Some(token)),
            Was::Stale => {
                let explained = highest > Some(token) || self.unknown.iter().any(above);
                explained.then_some(highest)
            }
        }
    }
}
