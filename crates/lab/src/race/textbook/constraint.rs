//! Strategy `constraint`: one statement, sent without asking first. The unique key on sold seats decides,
//! so it needs the guarded tables.

use super::super::contender::{Outcome, Pool};
use super::super::plan::Want;
use super::{Bought, Textbook, prepared, sorted};

const SELL: &str = "-- lab_constraint_sell
INSERT INTO lab_sales (hall, seat, buyer) SELECT $1, seat, $3 FROM unnest($2::integer[]) AS seat";

pub(in super::super) struct Constraint;

impl Textbook for Constraint {
    fn statements(&self) -> &'static [&'static str] {
        &[SELL]
    }

    fn buy<'a>(&'a self, pool: &'a Pool, hall: i32, want: &'a Want) -> Bought<'a> {
        Box::pin(buy(pool, hall, want))
    }
}

async fn buy(pool: &Pool, hall: i32, want: &Want) -> Result<Outcome, Outcome> {
    let connection = pool.connection().await?;
    let store = prepared(&connection, SELL).await?;
    let (buyer, seats) = sorted(want);
    connection.execute(&store, &[&hall, &seats, &buyer]).await?;
    Ok(Outcome::Won(None))
}
