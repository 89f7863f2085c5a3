//! Finds seats that were sold twice. Two judges that share nothing: the buyers' answers are counted by
//! seat, and the auditor of `core` reads the history in the database. Decides the exit code.

use std::collections::BTreeMap;

use serde::Serialize;
use soldonce_core::{Auditor, History, Invariant, StateKind};

use super::plan::Want;
use crate::kit::kinds;

/// Violations that a report keeps the words of.
const WORDS_MAX: usize = 5;

/// The findings of both judges in one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Judged {
    /// Winners beyond the first, by their answers, added up over the seats of all rounds.
    pub(super) double_sales: u64,
    /// The same over the seats of the warm-up, whose winners are in no table. All that follows is of
    /// rounds and warm-up together.
    pub(super) warm_up_double_sales: u64,
    /// Units sold again, as the auditor sees it.
    pub(super) sold_twice: u64,
    /// Units that winners were promised.
    pub(super) acknowledged: u64,
    /// Steps to sold in the history.
    pub(super) recorded: u64,
    /// Winners whose hold could not be confirmed, by kind.
    pub(super) unconfirmed: BTreeMap<String, u64>,
    /// Everything that the auditor found.
    pub(super) violations: u64,
    /// The first of them, in words.
    pub(super) first: Vec<String>,
}

/// The buyers to whom seats were promised. The warm-up has seats of its own.
#[derive(Debug, Default)]
pub(super) struct Winners {
    pub(super) warm_up: Vec<Want>,
    pub(super) rounds: Vec<Want>,
    /// Those of both who could not confirm, by kind.
    pub(super) unconfirmed: BTreeMap<String, u64>,
}

/// Judges a cell by its answers and by its history.
pub(super) fn judge(winners: &Winners, history: &History) -> Judged {
    let (rounds, warm_up) = (owners(&winners.rounds), owners(&winners.warm_up));
    let found = Auditor::check(history);
    let sold_twice = found.iter();
    let sold_twice = sold_twice.filter(|violation| violation.invariant == Invariant::I1SoldTwice);
    let steps = history.commits.iter();
    let steps = steps.flat_map(|commit| &commit.transitions);
    let sold = steps.filter(|step| step.to.kind() == StateKind::Sold);
    let words = found.iter().take(WORDS_MAX).map(ToString::to_string);
    Judged {
        double_sales: beyond_the_first(&rounds),
        warm_up_double_sales: beyond_the_first(&warm_up),
        sold_twice: count(sold_twice),
        acknowledged: rounds.values().chain(warm_up.values()).sum(),
        recorded: count(sold),
        unconfirmed: winners.unconfirmed.clone(),
        violations: u64::try_from(found.len()).unwrap_or(u64::MAX),
        first: words.collect(),
    }
}

/// Counts the winners of each seat.
fn owners(winners: &[Want]) -> BTreeMap<u32, u64> {
    let mut owners = BTreeMap::new();
    for seat in winners.iter().flat_map(|want| &want.seats) {
        *owners.entry(*seat).or_default() += 1;
    }
    owners
}

fn beyond_the_first(owners: &BTreeMap<u32, u64>) -> u64 {
    owners.values().map(|owners| owners - 1).sum()
}

fn count<T>(things: impl Iterator<Item = T>) -> u64 {
    u64::try_from(things.count()).unwrap_or(u64::MAX)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Promise {
    /// No unit is sold twice.
    SoldOnce,
    /// None: a race in which it sells nothing twice was no race.
    Broken,
}

/// Describes the faults of a strategy over all cells; empty if it did as it promised.
pub(super) fn faults(name: &str, promise: Promise, cells: &[(String, Judged)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (cell, judged) in cells {
        let mut fault = |what: String| faults.push(format!("{name}, {cell}: {what}"));
        if judged.recorded < judged.acknowledged {
            fault(format!(
                "{} units were promised to winners, the database has {}",
                judged.acknowledged, judged.recorded
            ));
        }
        if !judged.unconfirmed.is_empty() {
            let kinds = kinds(&judged.unconfirmed);
            fault(format!("winners could not confirm: {kinds}"));
        }
        let double_sales = judged.double_sales + judged.warm_up_double_sales;
        match promise {
            Promise::SoldOnce => {
                if judged.acknowledged == 0 {
                    fault("no buyer won, so this proves nothing".to_owned());
                }
                if double_sales > 0 {
                    fault(format!("{double_sales} units were sold twice"));
                }
                if judged.violations > 0 {
                    let first = judged.first.join("; ");
                    fault(format!("the auditor found {}: {first}", judged.violations));
                }
            }
            Promise::Broken if judged.sold_twice < double_sales => fault(format!(
                "{double_sales} units were sold twice, the auditor saw {}",
                judged.sold_twice
            )),
            Promise::Broken => {}
        }
    }
    let double_sales: u64 = cells.iter().map(|(_, judged)| judged.double_sales).sum();
    if promise == Promise::Broken && double_sales == 0 {
        faults.push(format!(
            "{name} sold nothing twice: buyers did not meet, so this race proves nothing; give more \
             --buyers or --rounds"
        ));
    }
    faults
}

#[cfg(test)]
mod tests;
