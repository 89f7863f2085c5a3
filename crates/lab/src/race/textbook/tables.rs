//! The tables of the textbook strategies, their guards, and the history of their sales for the auditor.

use std::collections::BTreeMap;

use deadpool_postgres::tokio_postgres::Row;
use serde::Serialize;
use soldonce_core::{
    BookingId, Cause, Commit, EventNo, Fence, History, Origin, Seq, Timestamp, Transition, UnitNo,
    UnitState, Version,
};

use super::super::plan::Hall;
use super::super::pool::Pool;
use super::Textbook;

/// What the database refuses by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Guards {
    /// Nothing.
    None,
    /// A second sale of a seat, by a unique key; a fence that does not rise, by a trigger.
    KeyAndFence,
}

const MAKE: &str = "-- lab_make
CREATE TABLE lab_seats (
    hall     integer NOT NULL,
    seat     integer NOT NULL,
    buyer    integer,
    version  bigint NOT NULL DEFAULT 0,
    fence    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (hall, seat)
);
CREATE TABLE lab_sales (
    n      bigserial PRIMARY KEY,
    hall   integer NOT NULL,
    seat   integer NOT NULL,
    buyer  integer NOT NULL
);
CREATE INDEX lab_sales_of_hall ON lab_sales (hall)";

const GUARD: &str = "-- lab_guard
CREATE UNIQUE INDEX lab_sold_once ON lab_sales (hall, seat);
CREATE FUNCTION lab_refuse_fence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'fence % is not above %', NEW.fence, OLD.fence USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER lab_fence_rises BEFORE UPDATE OF fence ON lab_seats
FOR EACH ROW WHEN (NEW.fence <= OLD.fence) EXECUTE FUNCTION lab_refuse_fence()";

const FILL: &str = "-- lab_fill
INSERT INTO lab_seats (hall, seat) SELECT $1, generate_series(0, $2 - 1)";

const SOLD: &str = "-- lab_sold
SELECT seat, buyer FROM lab_sales WHERE hall = $1 ORDER BY n";

/// Makes the tables in the schema that this pool's search path begins with.
pub(in super::super) async fn make(pool: &Pool, guards: Guards) -> anyhow::Result<()> {
    let connection = pool.get().await?;
    connection.batch_execute(MAKE).await?;
    if guards == Guards::KeyAndFence {
        connection.batch_execute(GUARD).await?;
    }
    Ok(())
}

impl Textbook {
    /// Fills a hall with free seats.
    pub(in super::super) async fn fill(&self, hall: &Hall) -> anyhow::Result<()> {
        let seats = i32::try_from(hall.seats())?;
        let connection = self.pool.get().await?;
        let fill = connection.prepare_cached(FILL).await?;
        connection.execute(&fill, &[&hall.number, &seats]).await?;
        Ok(())
    }

    /// Reads the sales of a hall, in the order in which they were written, as a history.
    pub(in super::super) async fn history(&self, hall: &Hall) -> anyhow::Result<History> {
        let connection = self.pool.get().await?;
        let statement = connection.prepare_cached(SOLD).await?;
        let rows = connection.query(&statement, &[&hall.number]).await?;
        let read = |row: &Row| {
            let (seat, buyer): (i32, i32) = (row.try_get(0)?, row.try_get(1)?);
            anyhow::Ok((u32::try_from(seat)?, u32::try_from(buyer)?))
        };
        let sold: Vec<(u32, u32)> = rows.iter().map(read).collect::<Result<_, _>>()?;
        Ok(history_of(hall.seats(), &sold))
    }
}

/// Builds a history of sales `(seat, buyer)`: every buyer's purchase is a commit, and each of its seats goes from free
/// to sold, as its writer believed. The auditor compares that with the seat's last state.
pub(in super::super) fn history_of(seats: u32, sold: &[(u32, u32)]) -> History {
    let mut buyers: Vec<u32> = Vec::new();
    let mut bought: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (seat, buyer) in sold {
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
        commits: commits.collect(),
        ..History::default()
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

#[cfg(test)]
mod tests {
    use super::*;
    use soldonce_core::{Auditor, Invariant};

    #[test]
    fn a_seat_that_is_sold_once_is_sound_and_one_sold_again_is_not() {
        let good = history_of(4, &[(0, 7), (1, 7), (2, 3)]);
        assert_eq!(good.commits.len(), 2);
        assert_eq!(Auditor::check(&good), []);
        let found = Auditor::check(&history_of(4, &[(0, 7), (2, 3), (0, 9)]));
        let twice: Vec<_> = found
            .iter()
            .filter(|violation| violation.invariant == Invariant::I1SoldTwice)
            .collect();
        assert_eq!(twice.len(), 1);
        assert_eq!(twice[0].unit, Some(UnitNo(0)));
    }
}
