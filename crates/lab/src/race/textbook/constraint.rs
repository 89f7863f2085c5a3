//! Strategy `constraint`: one statement, sent without a look first. The unique key on sold seats decides,
//! so it needs the guarded tables.

use super::super::outcome::Outcome;
use super::super::pool::Pool;
use super::Purchase;

pub(super) const RECORD: &str = "-- lab_record
INSERT INTO lab_sales (hall, seat, buyer) SELECT $1, seat, $3 FROM unnest($2::integer[]) AS seat";

pub(super) const STATEMENTS: &[&str] = &[RECORD];

pub(super) async fn buy(pool: &Pool, purchase: &Purchase) -> Result<Outcome, Outcome> {
    let connection = pool.connection().await?;
    let record = connection.prepare_cached(RECORD).await?;
    let Purchase {
        hall, buyer, seats, ..
    } = purchase;
    connection.execute(&record, &[hall, seats, buyer]).await?;
    Ok(Outcome::Won(None))
}
