//! What the lab's own strategies share: a table of seats, a table of what was sold, and how the
//! second becomes a history for the auditor.

use std::collections::BTreeMap;
use std::sync::Arc;

use deadpool_postgres::Object;
use deadpool_postgres::tokio_postgres::Error;
use deadpool_postgres::tokio_postgres::error::SqlState;
use soldonce_core::{
    BookingId, Cause, Commit, EventNo, Fence, History, Origin, Seq, Timestamp, Transition, UnitNo,
    UnitState, Version,
};

use super::super::plan::{Hall, Want};
use super::Outcome;

/// The refusal of the product, so that both count as one.
pub(super) const TAKEN: &str = "unit_unavailable";

/// Fills a hall with free seats by this statement.
pub(super) async fn fill(lane: &Object, sql: &'static str, hall: &Hall) -> anyhow::Result<()> {
    let seats = i32::try_from(hall.seats())?;
    let statement = lane.prepare_cached(sql).await?;
    lane.execute(&statement, &[&hall.number, &seats]).await?;
    Ok(())
}

/// The numbers of a request, as the tables have them.
pub(super) fn numbers(want: &Want) -> (i32, Vec<i32>) {
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    (
        number(want.buyer),
        want.seats.iter().copied().map(number).collect(),
    )
}

/// What an error of the driver counts as: its SQLSTATE, with the word for those that matter here.
pub(super) fn failed(error: &Error) -> Outcome {
    let Some(state) = error.code() else {
        return Outcome::Failed("connection lost".to_owned());
    };
    let code = state.code();
    Outcome::Failed(match state {
        state if *state == SqlState::T_R_DEADLOCK_DETECTED => format!("deadlock {code}"),
        state if *state == SqlState::T_R_SERIALIZATION_FAILURE => format!("serialization {code}"),
        state if *state == SqlState::QUERY_CANCELED => format!("timeout {code}"),
        _ => code.to_owned(),
    })
}

/// One row of what was sold: which seat to which buyer, in the sequence in which they were written.
pub(super) struct Sold {
    pub(super) seat: u32,
    pub(super) buyer: u32,
}

/// Reads what was sold in a hall by this statement.
pub(super) async fn sold(
    lane: &Object,
    sql: &'static str,
    hall: &Hall,
) -> anyhow::Result<Vec<Sold>> {
    let statement = lane.prepare_cached(sql).await?;
    let rows = lane.query(&statement, &[&hall.number]).await?;
    let read = |row: &deadpool_postgres::tokio_postgres::Row| {
        let (seat, buyer): (i32, i32) = (row.try_get(0)?, row.try_get(1)?);
        let (seat, buyer) = (u32::try_from(seat)?, u32::try_from(buyer)?);
        Ok(Sold { seat, buyer })
    };
    rows.iter().map(read).collect()
}

/// What was sold as a history: every buyer's purchase is a commit, and each of its seats goes from
/// free to sold, for that is what its writer believed. The auditor remembers what it was.
pub(super) fn history(seats: u32, sold: &[Sold]) -> History {
    let mut buyers: Vec<u32> = Vec::new();
    let mut bought: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for Sold { seat, buyer } in sold {
        if !bought.contains_key(buyer) {
            buyers.push(*buyer);
        }
        bought.entry(*buyer).or_default().push(*seat);
    }
    let origin = Origin::system("lab");
    let commits = (1_u64..).zip(&buyers).map(|(seq, buyer)| {
        let seats = bought.get(buyer).map(Vec::as_slice).unwrap_or_default();
        Commit {
            event: EventNo(0),
            seq: Seq(seq),
            at: Timestamp::from_ms(i64::try_from(seq).unwrap_or(i64::MAX)),
            origin: origin.clone(),
            reason: None,
            transitions: seats.iter().map(|seat| step(*seat, *buyer)).collect(),
        }
    });
    History {
        units: seats,
        terms: None,
        holds: Vec::new(),
        commits: commits.collect(),
    }
}

fn step(seat: u32, buyer: u32) -> Transition {
    Transition {
        unit: UnitNo(seat),
        from: UnitState::Free,
        to: UnitState::Sold(BookingId::from_bits(u128::from(buyer))),
        fence: Fence(1),
        version: Version(1),
        cause: Cause::SoldDirectly,
        hold: None,
    }
}

/// A hall and the connections to it.
pub(super) struct LabHall {
    pub(super) hall: Arc<Hall>,
    pub(super) pool: super::Pool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use soldonce_core::{Auditor, Invariant};

    #[test]
    fn a_seat_that_is_sold_once_is_sound_and_one_sold_again_is_not() {
        let sold = |seat, buyer| Sold { seat, buyer };
        let good = history(4, &[sold(0, 7), sold(1, 7), sold(2, 3)]);
        assert_eq!(good.commits.len(), 2);
        assert_eq!(Auditor::check(&good), []);
        let bad = history(4, &[sold(0, 7), sold(2, 3), sold(0, 9)]);
        let found = Auditor::check(&bad);
        let twice: Vec<_> = found
            .iter()
            .filter(|violation| violation.invariant == Invariant::I1SoldTwice)
            .collect();
        assert_eq!(twice.len(), 1);
        assert_eq!(twice[0].unit, Some(UnitNo(0)));
    }
}
