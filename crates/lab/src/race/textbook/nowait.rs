//! Strategy `nowait`: as `pessimistic`, but a locked row is an answer, not a wait.

use super::super::contender::{Outcome, Pool};
use super::super::plan::Want;
use super::pessimistic::SELL;
use super::{Bought, TAKEN, Textbook, is_taken, prepared, sorted};

const LOCK: &str = "-- lab_nowait_lock
SELECT seat, buyer FROM lab_seats WHERE hall = $1 AND seat = ANY ($2)
ORDER BY seat FOR UPDATE NOWAIT";

pub(in super::super) struct NoWait;

impl Textbook for NoWait {
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
    let transaction = connection.transaction().await?;
    // A row that another buyer has locked ends this with 55P03: refused as `locked`.
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
