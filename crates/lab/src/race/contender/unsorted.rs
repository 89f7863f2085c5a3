//! Strategy `unsorted`, which only the lab has: row locks taken one after the other as the request
//! lists the seats. It sells nothing twice; two buyers who begin at different ends wait for each
//! other until the database ends one of them.

use std::sync::Arc;

use deadpool_postgres::Object;
use deadpool_postgres::tokio_postgres::Error;
use soldonce_core::{History, OnHold};

use super::super::plan::{Hall, Want};
use super::lab_tables::{self, LabHall, TAKEN, failed, numbers};
use super::{Contender, Doing, Outcome, Pool, Sale};

const MAKE: &str = "-- lab_unsorted_make
CREATE TABLE lab_unsorted_seats (
    hall   integer NOT NULL,
    seat   integer NOT NULL,
    buyer  integer,
    PRIMARY KEY (hall, seat)
);
CREATE TABLE lab_unsorted_sales (
    n      bigserial PRIMARY KEY,
    hall   integer NOT NULL,
    seat   integer NOT NULL,
    buyer  integer NOT NULL
)";

const FILL: &str = "-- lab_unsorted_fill
INSERT INTO lab_unsorted_seats (hall, seat) SELECT $1, generate_series(0, $2 - 1)";

const LOCK: &str = "-- lab_unsorted_lock
SELECT buyer FROM lab_unsorted_seats WHERE hall = $1 AND seat = $2 FOR UPDATE";

const WRITE: &str = "-- lab_unsorted_write
WITH taken AS (
    UPDATE lab_unsorted_seats SET buyer = $3 WHERE hall = $1 AND seat = ANY ($2)
)
INSERT INTO lab_unsorted_sales (hall, seat, buyer) SELECT $1, seat, $3 FROM unnest($2) AS seat";

const SOLD: &str = "-- lab_unsorted_sold
SELECT seat, buyer FROM lab_unsorted_sales WHERE hall = $1 ORDER BY n";

/// The strategy on its tables.
pub(in super::super) struct Unsorted(Pool);

impl Unsorted {
    /// Makes its tables.
    ///
    /// # Errors
    /// When the database refuses.
    pub(in super::super) async fn open(pool: Pool) -> anyhow::Result<Self> {
        pool.get().await?.batch_execute(MAKE).await?;
        pool.warm().await?;
        Ok(Self(pool))
    }
}

impl Contender for Unsorted {
    fn open_hall<'a>(&'a self, hall: &'a Hall) -> Doing<'a, anyhow::Result<Arc<dyn Sale>>> {
        Box::pin(async move {
            lab_tables::fill(&self.0.get().await?, FILL, hall).await?;
            let (hall, pool) = (Arc::new(hall.clone()), self.0.clone());
            Ok(Arc::new(UnsortedSale(LabHall { hall, pool })) as Arc<dyn Sale>)
        })
    }

    fn statements(&self) -> &'static [&'static str] {
        &["BEGIN", LOCK, LOCK, LOCK, WRITE, "COMMIT"]
    }

    fn close(&self) -> Doing<'_, ()> {
        self.0.close();
        Box::pin(async {})
    }
}

struct UnsortedSale(LabHall);

impl UnsortedSale {
    /// The transaction of one buyer.
    async fn buy(&self, lane: &mut Object, want: &Want) -> Result<Outcome, Error> {
        let lock = lane.prepare_cached(LOCK).await?;
        let write = lane.prepare_cached(WRITE).await?;
        let (buyer, seats) = numbers(want);
        let hall = self.0.hall.number;
        // Dropped without a commit it is rolled back.
        let transaction = lane.transaction().await?;
        for seat in &seats {
            let row = transaction.query_one(&lock, &[&hall, seat]).await?;
            let owner: Option<i32> = row.try_get(0)?;
            if owner.is_some() {
                transaction.rollback().await?;
                return Ok(Outcome::Refused(TAKEN));
            }
        }
        transaction
            .execute(&write, &[&hall, &seats, &buyer])
            .await?;
        transaction.commit().await?;
        Ok(Outcome::Won(None))
    }
}

impl Sale for UnsortedSale {
    fn ask<'a>(&'a self, want: &'a Want) -> Doing<'a, Outcome> {
        Box::pin(async move {
            match self.0.pool.lane().await {
                Ok(mut lane) => {
                    let bought = self.buy(&mut lane, want).await;
                    bought.unwrap_or_else(|error| failed(&error))
                }
                Err(outcome) => outcome,
            }
        })
    }

    fn confirm(&self, _won: OnHold) -> Doing<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn history(&self) -> Doing<'_, anyhow::Result<History>> {
        Box::pin(async {
            let LabHall { hall, pool } = &self.0;
            let sold = lab_tables::sold(&pool.get().await?, SOLD, hall).await?;
            Ok(lab_tables::history(hall.seats(), &sold))
        })
    }
}
