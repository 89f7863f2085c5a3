//! Brute force about neighbours: by trying everything, with none of the code under test.

use std::collections::BTreeSet;

use soldonce_core::{Chart, UnitNo};

/// The runs of neighbouring seats of each row that are in a set.
pub(crate) fn runs(chart: &Chart, set: &BTreeSet<UnitNo>) -> Vec<Vec<UnitNo>> {
    let mut runs = Vec::new();
    for row in chart.rows() {
        let mut run = Vec::new();
        for seat in row.units() {
            if set.contains(&seat) {
                run.push(seat);
            } else if !run.is_empty() {
                runs.push(std::mem::take(&mut run));
            }
        }
        runs.extend((!run.is_empty()).then_some(run));
    }
    runs
}

pub(crate) fn longest_run(chart: &Chart, set: &BTreeSet<UnitNo>) -> u32 {
    let longest = runs(chart, set).iter().map(Vec::len).max();
    u32::try_from(longest.unwrap_or(0)).unwrap()
}

/// The seats that would be left single in runs where another choice of as many seats would leave
/// none. `free` are the seats that could be taken before.
pub(crate) fn orphans(chart: &Chart, free: &BTreeSet<UnitNo>, taken: &[UnitNo]) -> Vec<UnitNo> {
    let taken: BTreeSet<UnitNo> = taken.iter().copied().collect();
    let mut orphans = Vec::new();
    for run in runs(chart, free) {
        let chosen: u32 = bits(run.iter().map(|seat| taken.contains(seat)));
        if chosen == 0 {
            continue;
        }
        let seats = u32::try_from(run.len()).unwrap();
        let same_size =
            (0..1 << seats).filter(|other: &u32| other.count_ones() == chosen.count_ones());
        let avoidable = same_size
            .into_iter()
            .any(|other| singles(other, seats).is_empty());
        if avoidable {
            let single = singles(chosen, seats);
            orphans.extend(
                single
                    .into_iter()
                    .map(|at| run[usize::try_from(at).unwrap()]),
            );
        }
    }
    orphans
}

/// The places of a run that are left single when those of a mask are taken.
fn singles(taken: u32, seats: u32) -> Vec<u32> {
    let left = |at: Option<u32>| at.is_some_and(|at| at < seats && taken >> at & 1 == 0);
    (0..seats)
        .filter(|at| left(Some(*at)) && !left(at.checked_sub(1)) && !left(Some(at + 1)))
        .collect()
}

fn bits(flags: impl Iterator<Item = bool>) -> u32 {
    flags
        .enumerate()
        .fold(0, |bits, (at, flag)| bits | u32::from(flag) << at)
}
