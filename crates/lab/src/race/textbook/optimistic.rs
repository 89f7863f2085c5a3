//! Strategy `optimistic`: read versions, write where they are still the same, and try again a bounded
//! number of times.

use deadpool_postgres::Object;
use deadpool_postgres::tokio_postgres::Error;
use deadpool_postgres::tokio_postgres::types::ToSql;

use super::super::contender::{Outcome, Pool};
use super::super::plan::Want;
use super::{Bought, TAKEN, Textbook, is_taken, prepared, sorted};

/// Most attempts of one buyer.
const TRIES_MAX: u32 = 10;

const READ: &str = "-- lab_optimistic_read
SELECT seat, buyer, version FROM lab_seats WHERE hall = $1 AND seat = ANY ($2) ORDER BY seat";

const WRITE: &str = "-- lab_optimistic_write
UPDATE lab_seats s SET buyer = $4, version = s.version + 1
FROM unnest($2::integer[], $3::bigint[]) AS seen (seat, version)
WHERE s.hall = $1 AND s.seat = seen.seat AND s.version = seen.version";

const SELL: &str = "-- lab_optimistic_sell
INSERT INTO lab_sales (hall, seat, buyer) SELECT $1, seat, $3 FROM unnest($2::integer[]) AS seat";

pub(in super::super) struct Optimistic;

impl Textbook for Optimistic {
    fn statements(&self) -> &'static [&'static str] {
        &[READ, "BEGIN", WRITE, SELL, "COMMIT"]
    }

    fn buy<'a>(&'a self, pool: &'a Pool, hall: i32, want: &'a Want) -> Bought<'a> {
        Box::pin(buy(pool, hall, want))
    }
}

async fn buy(pool: &Pool, hall: i32, want: &Want) -> Result<Outcome, Outcome> {
    let mut connection = pool.connection().await?;
    for _ in 0..TRIES_MAX {
        if let Some(outcome) = try_to_buy(&mut connection, hall, want).await? {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Failed("overtaken too often".to_owned()))
}

/// One attempt; None when a row had moved.
async fn try_to_buy(
    connection: &mut Object,
    hall: i32,
    want: &Want,
) -> Result<Option<Outcome>, Error> {
    let read = prepared(connection, READ).await?;
    let write = prepared(connection, WRITE).await?;
    let store = prepared(connection, SELL).await?;
    let (buyer, seats) = sorted(want);
    let rows = connection.query(&read, &[&hall, &seats]).await?;
    if is_taken(&rows)? {
        return Ok(Some(TAKEN));
    }
    let versions = rows.iter().map(|row| row.try_get(2));
    let versions = versions.collect::<Result<Vec<i64>, _>>()?;
    let transaction = connection.transaction().await?;
    let values: [&(dyn ToSql + Sync); 4] = [&hall, &seats, &versions, &buyer];
    let written = transaction.execute(&write, &values).await?;
    if !usize::try_from(written).is_ok_and(|written| written == seats.len()) {
        transaction.rollback().await?;
        return Ok(None);
    }
    transaction
        .execute(&store, &[&hall, &seats, &buyer])
        .await?;
    transaction.commit().await?;
    Ok(Some(Outcome::Won(None)))
}
