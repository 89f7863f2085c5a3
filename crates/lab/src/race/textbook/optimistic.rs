//! Strategy `optimistic`: read versions, write where they are still the same, and try again a bounded
//! number of times.

use deadpool_postgres::Object;
use deadpool_postgres::tokio_postgres::Error;

use super::super::outcome::Outcome;
use super::super::pool::Pool;
use super::constraint::RECORD;
use super::{Purchase, TAKEN, is_taken};

/// Most attempts of one buyer.
const TRIES_MAX: u32 = 10;

const READ: &str = "-- lab_optimistic_read
SELECT seat, buyer, version FROM lab_seats WHERE hall = $1 AND seat = ANY ($2) ORDER BY seat";

const WRITE: &str = "-- lab_optimistic_write
UPDATE lab_seats s SET buyer = $4, version = s.version + 1
FROM unnest($2::integer[], $3::bigint[]) AS seen (seat, version)
WHERE s.hall = $1 AND s.seat = seen.seat AND s.version = seen.version";

pub(super) const STATEMENTS: &[&str] = &[READ, "BEGIN", WRITE, RECORD, "COMMIT"];

pub(super) async fn buy(pool: &Pool, purchase: &Purchase) -> Result<Outcome, Outcome> {
    let mut connection = pool.connection().await?;
    for _ in 0..TRIES_MAX {
        if let Some(outcome) = try_to_buy(&mut connection, purchase).await? {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Failed("overtaken too often".to_owned()))
}

/// Tries to buy once; None when a row had another version.
async fn try_to_buy(
    connection: &mut Object,
    purchase: &Purchase,
) -> Result<Option<Outcome>, Error> {
    let read = connection.prepare_cached(READ).await?;
    let write = connection.prepare_cached(WRITE).await?;
    let record = connection.prepare_cached(RECORD).await?;
    let Purchase {
        hall, buyer, seats, ..
    } = purchase;
    let rows = connection.query(&read, &[hall, seats]).await?;
    if is_taken(&rows)? {
        return Ok(Some(TAKEN));
    }
    let versions = rows.iter().map(|row| row.try_get(2));
    let versions = versions.collect::<Result<Vec<i64>, _>>()?;
    let transaction = connection.transaction().await?;
    let written = transaction
        .execute(&write, &[hall, seats, &versions, buyer])
        .await?;
    if usize::try_from(written) != Ok(seats.len()) {
        transaction.rollback().await?;
        return Ok(None);
    }
    transaction.execute(&record, &[hall, seats, buyer]).await?;
    transaction.commit().await?;
    Ok(Some(Outcome::Won(None)))
}
