//! Strategy `naive`: look whether the seats are free, then take them. Between the two lies nothing but
//! the way to the database and back.

use super::super::contender::{Outcome, Pool};
use super::super::plan::Want;
use super::{Bought, TAKEN, Textbook, is_taken, prepared, sorted};

const READ: &str = "-- lab_naive_read
SELECT seat, buyer FROM lab_seats WHERE hall = $1 AND seat = ANY ($2)";

const WRITE: &str = "-- lab_naive_write
WITH taken AS (
    UPDATE lab_seats SET buyer = $3 WHERE hall = $1 AND seat = ANY ($2)
)
INSERT INTO lab_sales (hall, seat, buyer) SELECT $1, seat, $3 FROM unnest($2) AS seat";

pub(in super::super) struct Naive;

impl Textbook for Naive {
    fn statements(&self) -> &'static [&'static str] {
        &[READ, WRITE]
    }

    fn buy<'a>(&'a self, pool: &'a Pool, hall: i32, want: &'a Want) -> Bought<'a> {
        Box::pin(buy(pool, hall, want))
    }
}

async fn buy(pool: &Pool, hall: i32, want: &Want) -> Result<Outcome, Outcome> {
    let connection = pool.connection().await?;
    let read = prepared(&connection, READ).await?;
    let write = prepared(&connection, WRITE).await?;
    let (buyer, seats) = sorted(want);
    if is_taken(&connection.query(&read, &[&hall, &seats]).await?)? {
        return Ok(TAKEN);
    }
    connection.execute(&write, &[&hall, &seats, &buyer]).await?;
    Ok(Outcome::Won(None))
}
