//! Strategies `pessimistic`, `nowait` and `unsorted`: lock the rows, decide, write. They differ in the
//! lock alone.

use super::super::outcome::Outcome;
use super::super::pool::Pool;
use super::naive::SELL;
use super::{Purchase, TAKEN, is_taken};

/// Locks the rows in order of their seats, and waits for others.
const IN_ORDER: &str = "-- lab_pessimistic_lock
SELECT seat, buyer FROM lab_seats WHERE hall = $1 AND seat = ANY ($2) ORDER BY seat FOR UPDATE";

/// The same, but a locked row is an answer: SQLSTATE 55P03, refused as `locked`.
const WITHOUT_WAIT: &str = "-- lab_nowait_lock
SELECT seat, buyer FROM lab_seats WHERE hall = $1 AND seat = ANY ($2)
ORDER BY seat FOR UPDATE NOWAIT";

/// Locks one row. Two buyers who begin at different ends wait for each other until the database ends one
/// of them.
const ONE_BY_ONE: &str = "-- lab_unsorted_lock
SELECT seat, buyer FROM lab_seats WHERE hall = $1 AND seat = ANY ($2) FOR UPDATE";

pub(super) const PESSIMISTIC: &[&str] = &["BEGIN", IN_ORDER, SELL, "COMMIT"];
pub(super) const NOWAIT: &[&str] = &["BEGIN", WITHOUT_WAIT, SELL, "COMMIT"];
pub(super) const UNSORTED: &[&str] = &["BEGIN", ONE_BY_ONE, ONE_BY_ONE, ONE_BY_ONE, SELL, "COMMIT"];

pub(super) async fn pessimistic(pool: &Pool, purchase: &Purchase) -> Result<Outcome, Outcome> {
    buy(pool, purchase, IN_ORDER, &[&purchase.seats]).await
}

pub(super) async fn nowait(pool: &Pool, purchase: &Purchase) -> Result<Outcome, Outcome> {
    buy(pool, purchase, WITHOUT_WAIT, &[&purchase.seats]).await
}

pub(super) async fn unsorted(pool: &Pool, purchase: &Purchase) -> Result<Outcome, Outcome> {
    let each: Vec<&[i32]> = purchase.listed.chunks(1).collect();
    buy(pool, purchase, ONE_BY_ONE, &each).await
}

/// Locks these groups of seats one after the other, decides, and writes.
async fn buy(
    pool: &Pool,
    purchase: &Purchase,
    lock: &str,
    groups: &[&[i32]],
) -> Result<Outcome, Outcome> {
    let mut connection = pool.connection().await?;
    let lock = connection.prepare_cached(lock).await?;
    let sell = connection.prepare_cached(SELL).await?;
    let Purchase {
        hall, buyer, seats, ..
    } = purchase;
    // Dropped without a commit it is rolled back.
    let transaction = connection.transaction().await?;
    for group in groups {
        if is_taken(&transaction.query(&lock, &[hall, group]).await?)? {
            transaction.rollback().await?;
            return Ok(TAKEN);
        }
    }
    transaction.execute(&sell, &[hall, seats, buyer]).await?;
    transaction.commit().await?;
    Ok(Outcome::Won(None))
}
