//! Strategy `pessimistic`: lock the rows in order of their seats, waiting for others; decide; write.

use super::super::contender::{Outcome, Pool};
use super::super::plan::Want;
use super::{Bought, TAKEN, Textbook, is_taken, prepared, sorted};

const LOCK: &str = "-- lab_pessimistic_lock
SELECT seat, buyer FROM lab_seats WHERE hall = $1 AND seat = ANY ($2) ORDER BY seat FOR UPDATE";

/// Sells seats whose rows are locked.
pub(super) const SELL: &str = "-- lab_sell
WITH taken AS (
    UPDATE lab_seats SET buyer = $3 WHERE hall = $1 AND seat = ANY ($2)
)
INSERT INTO lab_sales (hall, seat, buyer) SELECT $1, seat, $3 FROM unnest($2) AS seat";

pub(in super::super) struct Pessimistic;

impl Textbook for Pessimistic {
    fn statements(&self) -> &'static [&'static str] {
        &["BEGIN", LOCK, SELL, "COMMIT"]
    }

    fn buy<'a>(&'a self, pool: &'a Pool, hall: i32, want: &'a Want) -> Bought<'a> {
        Box::pin(buy(pool, hall, want))
    }
}

async fn buy(pool: &Pool, hall: i32, want: &Want) -> Result<Outcome, Outcome> {
    let mut connection = pool.connection().await?;
    let lock = prepared(&connection, LOCK).await?;
    let store = prepared(&connection, SELL).await?;
    let (buyer, seats) = sorted(want);
    // Dropped without a commit it is rolled back.
    let transaction = connection.transaction().await?;
    if is_taken(&transaction.query(&lock, &[&hall, &seats]).await?)? {
        transaction.rollback().await?;
        return Ok(TAKEN);
    }
    transaction
        .execute(&store, &[&hall, &seats, &buyer])
        .await?;
    transaction.commit().await?;
    Ok(Outcome::Won(None))
}
