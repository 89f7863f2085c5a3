//! Looks for an order of operations that explains their replies and does not contradict their times:
//! an operation that returned before another was called comes before it.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

/// Most operations that may be open beside the oldest one.
const WINDOW: usize = 256;

/// When an operation was called and when it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) invoked: Duration,
    pub(super) returned: Duration,
}

/// What one operation after another does to a thing.
pub(super) trait Model {
    /// The thing.
    type State: Copy + Eq + Hash;

    /// The state after operation `op`, or `None` if its reply contradicts `state`. Operations that may
    /// happen by itself up to `horizon` may have happened.
    fn step(&self, state: Self::State, op: usize, horizon: Duration) -> Option<Self::State>;
}

/// Why there is no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No explanation reaches beyond this operation.
    Stuck(usize),
    /// More than [`WINDOW`] operations overlap.
    TooWide,
}

/// A part of an order: everything before `first`, and those after it that `window` marks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Part<S> {
    first: usize,
    window: [u64; WINDOW / 64],
    state: S,
}

/// Looks for an order of the operations, which are sorted by their calls, from `state` on.
pub(super) fn find_order<M: Model>(
    model: &M,
    spans: &[Span],
    state: M::State,
) -> Result<(), Failure> {
    let begin = Part {
        first: 0,
        window: [0; WINDOW / 64],
        state,
    };
    let (mut open, mut seen) = (vec![begin], HashSet::from([begin]));
    let mut furthest = 0;
    while let Some(part) = open.pop() {
        furthest = furthest.max(part.first);
        if part.first == spans.len() {
            return Ok(());
        }
        let (eligible, horizon) = part.eligible(spans).ok_or(Failure::TooWide)?;
        for op in eligible {
            let Some(state) = model.step(part.state, op, horizon) else {
                continue;
            };
            let next = part.with(op, state);
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    Err(Failure::Stuck(furthest))
}

impl<S: Copy> Part<S> {
    /// The operations that may come next, and the time by which one of them must have happened.
    /// `None` if they do not fit the window.
    fn eligible(&self, spans: &[Span]) -> Option<(Vec<usize>, Duration)> {
        let mut horizon = Duration::MAX;
        let mut candidates: Vec<(usize, Duration)> = Vec::new();
        for (op, span) in spans.iter().enumerate().skip(self.first) {
            if span.invoked > horizon {
                break;
            }
            if !self.has(op)? {
                horizon = horizon.min(span.returned);
                candidates.push((op, span.invoked));
            }
        }
        // A later, shorter operation may have ruled out an earlier candidate.
        candidates.retain(|(_, invoked)| *invoked <= horizon);
        // The last one is looked at first: put what was called first there.
        Some((
            candidates.iter().rev().map(|(op, _)| *op).collect(),
            horizon,
        ))
    }

    /// Whether `op` is in the order; `None` if it is outside the window.
    fn has(&self, op: usize) -> Option<bool> {
        let bit = op - self.first;
        let word = self.window.get(bit / 64)?;
        Some(word >> (bit % 64) & 1 == 1)
    }

    /// The part with `op` added. The window begins at the first operation that is missing.
    fn with(mut self, op: usize, state: S) -> Self {
        let bit = op - self.first;
        if let Some(word) = self.window.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
        while self.has(self.first) == Some(true) {
            self.first += 1;
            self.shift();
        }
        Self { state, ..self }
    }

    /// Moves the window by one operation.
    fn shift(&mut self) {
        let mut carried = 0;
        for word in self.window.iter_mut().rev() {
            let low = *word & 1;
            *word = *word >> 1 | carried << 63;
            carried = low;
        }
    }
}
