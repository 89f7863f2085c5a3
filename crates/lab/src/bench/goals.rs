//! What was measured beside what was wanted (`docs` call the goals P1 to P5).

use serde::Serialize;

use super::OPEN;
use super::refusals::{REFUSALS_KEYED, REFUSALS_SHARED};
use super::report::{BenchReport, Summary};
use super::table::{table, thousandths};

/// One goal and whether it is met. All figures in thousandths.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verdict {
    pub(super) id: &'static str,
    pub(super) what: String,
    pub(super) measured_permille: u64,
    /// At least, or at most, as `bound` says: the first step.
    pub(super) first_permille: u64,
    /// The goal.
    pub(super) full_permille: u64,
    pub(super) bound: Bound,
    pub(super) met: Met,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtLeast,
    AtMost,
}

/// How far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Met {
    Goal,
    FirstStep,
    Missed,
}

impl Verdict {
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
        let (first_permille, full_permille) = (first, full);
        Self {
            id,
            what,
            measured_permille: measured,
            first_permille,
            full_permille,
            bound,
            met,
        }
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

/// Everything that one benchmark found.
#[derive(Serialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    closed: Summary,
    open: Option<Summary>,
    goals: Vec<Verdict>,
}

impl Outcome {
    pub(super) fn new(closed: &BenchReport, open: Option<&BenchReport>) -> Self {
        let mut goals: Vec<Verdict> = closed
            .measured()
            .filter_map(|scenario| {
                let (goal, name) = (scenario.goal()?, scenario.name());
                let ratio = closed.ratio_of(name, |load| load.rate_per_s)?;
                let what = format!("{name} / echo, requests a second, closed loop");
                let steps = (goal.first, goal.full);
                Some(Verdict::new((goal.id, what), ratio, Bound::AtLeast, steps))
            })
            .collect();
        if let Some((keyed, plain)) = closed
            .rate_of(REFUSALS_KEYED)
            .zip(closed.rate_of(REFUSALS_SHARED))
        {
            let what = format!("{REFUSALS_KEYED} / {REFUSALS_SHARED}, requests a second");
            let ratio = keyed.saturating_mul(1_000) / plain.max(1);
            let steps = (950, 950);
            goals.push(Verdict::new(("P15", what), ratio, Bound::AtLeast, steps));
        }
        if let Some(ratio) = open.and_then(|open| open.ratio_of(OPEN, |load| load.latency_us.p99)) {
            let what = format!("{OPEN} / echo, p99, open loop at half the peak of {OPEN}");
            goals.push(Verdict::new(
                ("P4", what),
                ratio,
                Bound::AtMost,
                (3_000, 3_000),
            ));
        }
        Self {
            closed: closed.summary(),
            open: open.map(BenchReport::summary),
            goals,
        }
    }

    pub(super) fn text(&self) -> String {
        let goals: Vec<_> = self.goals.iter().map(Verdict::line).collect();
        let tables = [Some(&self.closed), self.open.as_ref()];
        let tables: Vec<_> = tables.into_iter().flatten().map(table).collect();
        format!("{}\n\n{}", tables.join("\n\n"), goals.join("\n"))
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
        let name = ("P4", "p99".to_owned());
        let at_most = Verdict::new(name, 3_001, Bound::AtMost, (3_000, 3_000));
        assert_eq!(at_most.met, Met::Missed);
        assert!(
            at_most.line().ends_with("<= 3.000: MISSED"),
            "{}",
            at_most.line()
        );
    }
}
