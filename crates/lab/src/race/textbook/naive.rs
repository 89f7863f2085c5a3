//! Strategy `naive`: look whether the seats are free, then take them. Between the two lies nothing but
//! one round trip to the database.

use super::super::outcome::Outcome;
use super::super::pool::Pool;
use super::{Purchase, TAKEN, is_taken};

const READ: &str = "-- lab_naive_read
SELECT seat, buyer FROM lab_seats WHERE hall = $1 AND seat = ANY ($2)";

/// Marks seats as taken and records their sale, in any state.
pub(super) const SELL: &str = "-- lab_sell
WITH taken AS (
    UPDATE lab_seats SET buyer = $3 WHERE hall = $1 AND seat = ANY ($2)
)
INSERT INTO lab_sales (hall, seat, buyer) SELECT $1, seat, $3 FROM unnest($2) AS seat";

pub(super) const STATEMENTS: &[&str] = &[READ, SELL];

pub(super) async fn buy(pool: &Pool, purchase: &Purchase) -> Result<Outcome, Outcome> {
    let connection = pool.connection().await?;
    let read = connection.prepare_cached(READ).await?;
    let sell = connection.prepare_cached(SELL).await?;
    let Purchase {
        hall, buyer, seats, ..
    } = purchase;
    if is_taken(&connection.query(&read, &[hall, seats]).await?)? {
        return Ok(TAKEN);
    }
    connection.execute(&sell, &[hall, seats, buyer]).await?;
    Ok(Outcome::Won(None))
}
