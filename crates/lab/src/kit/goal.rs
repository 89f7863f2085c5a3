//! Goals: a measured figure compared with its bound (`docs/performance.md` numbers them P1 to P22).

use serde::Serialize;

use super::stats::thousandths;

/// One goal and whether it is met. All figures in thousandths.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verdict {
    id: &'static str,
    what: String,
    measured_permille: u64,
    /// At least, or at most, as `bound` says: the first step.
    first_permille: u64,
    full_permille: u64,
    bound: Bound,
    met: Met,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtLeast,
    AtMost,
}

/// How far a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Met {
    Goal,
    FirstStep,
    Missed,
}

impl Verdict {
    /// Compares `measured` with the first step and with the goal.
    pub(crate) fn new(
        (id, what): (&'static str, String),
        measured: u64,
        bound: Bound,
        (first, full): (u64, u64),
    ) -> Self {
        let holds = |wanted: u64| match bound {
            Bound::AtLeast => measured >= wanted,
            Bound::AtMost => measured <= wanted,
        };
        let met = if holds(full) {
            Met::Goal
        } else if holds(first) {
            Met::FirstStep
        } else {
            Met::Missed
        };
        Self {
            id,
            what,
            measured_permille: measured,
            first_permille: first,
            full_permille: full,
            bound,
            met,
        }
    }

    /// Compares `measured` with a goal that has no first step.
    pub(crate) fn single(
        (id, what): (&'static str, &str),
        measured: u64,
        bound: Bound,
        goal: u64,
    ) -> Self {
        Self::new((id, what.to_owned()), measured, bound, (goal, goal))
    }

    pub(crate) fn line(&self) -> String {
        let sign = match self.bound {
            Bound::AtLeast => ">=",
            Bound::AtMost => "<=",
        };
        let full = thousandths(self.full_permille);
        let first = if self.first_permille == self.full_permille {
            String::new()
        } else {
            format!(", first step {sign} {}", thousandths(self.first_permille))
        };
        let met = match self.met {
            Met::Goal => "met",
            Met::FirstStep => "first step met",
            Met::Missed => "MISSED",
        };
        let (id, what, measured) = (self.id, &self.what, thousandths(self.measured_permille));
        format!("{id:<4} {what:<58} {measured:>10}   {sign} {full}{first}: {met}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_by_steps() {
        let at_least = |measured| {
            let name = ("P1", "holds".to_owned());
            Verdict::new(name, measured, Bound::AtLeast, (400, 500)).met
        };
        let met = [399, 400, 499, 500].map(at_least);
        assert_eq!(
            met,
            [Met::Missed, Met::FirstStep, Met::FirstStep, Met::Goal]
        );
        let at_most = Verdict::single(("P4", "p99"), 3_001, Bound::AtMost, 3_000).line();
        assert!(at_most.ends_with("<= 3.000: MISSED"), "{at_most}");
    }
}
