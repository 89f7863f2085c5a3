//! Strategy `unsorted`: row locks taken one after the other as the request lists the seats. It sells
//! nothing twice; two buyers who begin at different ends wait for each other until the database ends one
//! of them.

use super::super::contender::{Outcome, Pool};
use super::super::plan::Want;
use super::pessimistic::SELL;
use super::{Bought, TAKEN, Textbook, as_listed, is_taken, prepared};

const LOCK: &str = "-- lab_unsorted_lock
SELECT seat, buyer FROM lab_seats WHERE hall = $1 AND seat = $2 FOR UPDATE";

pub(in super::super) struct Unsorted;

impl Textbook for Unsorted {
    fn statements(&self) -> &'static [&'static str] {
        &["BEGIN", LOCK, LOCK, LOCK, SELL, "COMMIT"]
    }

    fn buy<'a>(&'a self, pool: &'a Pool, hall: i32, want: &'a Want) -> Bought<'a> {
        Box::pin(buy(pool, hall, want))
    }
}

async fn buy(pool: &Pool, hall: i32, want: &Want) -> Result<Outcome, Outcome> {
    let mut connection = pool.connection().await?;
    let lock = prepared(&connection, LOCK).await?;
    let store = prepared(&connection, SELL).await?;
    let (buyer, seats) = as_listed(want);
    let transaction = connection.transaction().await?;
    for seat in &seats {
        if is_taken(&transaction.query(&lock, &[&hall, seat]).await?)? {
            transaction.rollback().await?;
            return Ok(TAKEN);
        }
    }
    transaction
        .execute(&store, &[&hall, &seats, &buyer])
        .await?;
    transaction.commit().await?;
    Ok(Outcome::Won(None))
}
