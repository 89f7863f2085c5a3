//! Who sold a seat twice. Two judges that share nothing: the buyers' answers are counted by seat, and
//! the auditor of `core` reads the history that the database holds. Decides the exit code.

use std::collections::BTreeMap;

use serde::Serialize;
use soldonce_core::{Auditor, History, Invariant, StateKind};

use super::plan::Want;

/// Violations that a report keeps the words of.
const WORDS_MAX: usize = 5;

/// What the judges say of one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Judged {
    /// Winners beyond the first, by their answers, added up over all seats.
    pub(super) double_sales: u64,
    /// Units sold again, as the auditor sees it.
    pub(super) sold_twice: u64,
    /// Units that winners were told are theirs.
    pub(super) acknowledged: u64,
    /// Steps to sold in the history.
    pub(super) recorded: u64,
    /// Everything that the auditor found.
    pub(super) violations: u64,
    /// The first of them, in words.
    pub(super) first: Vec<String>,
}

/// Judges a cell by what its winners were told and by its history.
pub(super) fn judge(winners: &[Want], history: &History) -> Judged {
    let mut owners: BTreeMap<u32, u64> = BTreeMap::new();
    for seat in winners.iter().flat_map(|want| &want.seats) {
        *owners.entry(*seat).or_default() += 1;
    }
    let found = Auditor::check(history);
    let sold_twice = found
        .iter()
        .filter(|violation| violation.invariant == Invariant::I1SoldTwice);
    let steps = history
        .commits
        .iter()
        .flat_map(|commit| &commit.transitions);
    let sold = steps.filter(|step| step.to.kind() == StateKind::Sold);
    let words = found.iter().take(WORDS_MAX).map(ToString::to_string);
    Judged {
        double_sales: owners.values().map(|owners| owners - 1).sum(),
        sold_twice: count(sold_twice),
        acknowledged: owners.values().sum(),
        recorded: count(sold),
        violations: u64::try_from(found.len()).unwrap_or(u64::MAX),
        first: words.collect(),
    }
}

fn count<T>(things: impl Iterator<Item = T>) -> u64 {
    u64::try_from(things.count()).unwrap_or(u64::MAX)
}

/// What a strategy promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Promise {
    /// No unit is sold twice.
    SoldOnce,
    /// None: a race in which it sells nothing twice was no race.
    Broken,
}

/// What is wrong with all cells of a strategy, in words. Nothing: it did as it promised.
pub(super) fn faults(name: &str, promise: Promise, cells: &[(String, Judged)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (cell, judged) in cells {
        let mut fault = |what: String| faults.push(format!("{name}, {cell}: {what}"));
        if judged.recorded < judged.acknowledged {
            let Judged {
                acknowledged,
                recorded,
                ..
            } = judged;
            fault(format!(
                "{acknowledged} units were promised to winners, the database has {recorded}"
            ));
        }
        match promise {
            Promise::SoldOnce => {
                if judged.acknowledged == 0 {
                    fault("nobody won, so this proves nothing".to_owned());
                }
                if judged.double_sales > 0 {
                    fault(format!("{} units were sold twice", judged.double_sales));
                }
                if judged.violations > 0 {
                    let first = judged.first.join("; ");
                    fault(format!("the auditor found {}: {first}", judged.violations));
                }
            }
            Promise::Broken if judged.sold_twice < judged.double_sales => fault(format!(
                "{} units were sold twice, the auditor saw {}",
                judged.double_sales, judged.sold_twice
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
