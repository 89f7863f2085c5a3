//! Strategy `naive`, which only the lab has: look whether the seats are free, then take them. Between
//! the two lies nothing but the way to the database and back.

use std::sync::Arc;

use deadpool_postgres::Object;
use deadpool_postgres::tokio_postgres::Error;
use soldonce_core::{History, OnHold};

use super::super::plan::{Hall, Want};
use super::lab_tables::{self, LabHall, TAKEN, failed, numbers};
use super::{Contender, Doing, Outcome, Pool, Sale};

/// Tables without any guard: nothing says that a seat is sold once.
const MAKE: &str = "-- lab_naive_make
CREATE TABLE lab_naive_seats (
    hall    integer NOT NULL,
    seat    integer NOT NULL,
    status  text NOT NULL DEFAULT 'free',
    buyer   integer,
    PRIMARY KEY (hall, seat)
);
CREATE TABLE lab_naive_sales (
    n      bigserial PRIMARY KEY,
    hall   integer NOT NULL,
    seat   integer NOT NULL,
    buyer  integer NOT NULL
)";

const FILL: &str = "-- lab_naive_fill
INSERT INTO lab_naive_seats (hall, seat) SELECT $1, generate_series(0, $2 - 1)";

const READ: &str = "-- lab_naive_read
SELECT seat FROM lab_naive_seats WHERE hall = $1 AND seat = ANY ($2) AND status <> 'free'";

const WRITE: &str = "-- lab_naive_write
WITH taken AS (
    UPDATE lab_naive_seats SET status = 'sold', buyer = $3 WHERE hall = $1 AND seat = ANY ($2)
)
INSERT INTO lab_naive_sales (hall, seat, buyer) SELECT $1, seat, $3 FROM unnest($2) AS seat";

const SOLD: &str = "-- lab_naive_sold
SELECT seat, buyer FROM lab_naive_sales WHERE hall = $1 ORDER BY n";

/// The strategy on its tables.
pub(in super::super) struct Naive(Pool);

impl Naive {
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

impl Contender for Naive {
    fn open_hall<'a>(&'a self, hall: &'a Hall) -> Doing<'a, anyhow::Result<Arc<dyn Sale>>> {
        Box::pin(async move {
            lab_tables::fill(&self.0.get().await?, FILL, hall).await?;
            let (hall, pool) = (Arc::new(hall.clone()), self.0.clone());
            Ok(Arc::new(NaiveSale(LabHall { hall, pool })) as Arc<dyn Sale>)
        })
    }

    fn statements(&self) -> &'static [&'static str] {
        &[READ, WRITE]
    }

    fn close(&self) -> Doing<'_, ()> {
        self.0.close();
        Box::pin(async {})
    }
}

struct NaiveSale(LabHall);

impl NaiveSale {
    /// What one buyer does.
    async fn buy(&self, lane: &Object, want: &Want) -> Result<Outcome, Error> {
        let read = lane.prepare_cached(READ).await?;
        let write = lane.prepare_cached(WRITE).await?;
        let (buyer, seats) = numbers(want);
        let hall = self.0.hall.number;
        let taken = lane.query(&read, &[&hall, &seats]).await?;
        if !taken.is_empty() {
            return Ok(Outcome::Refused(TAKEN));
        }
        lane.execute(&write, &[&hall, &seats, &buyer]).await?;
        Ok(Outcome::Won(None))
    }
}

impl Sale for NaiveSale {
    fn ask<'a>(&'a self, want: &'a Want) -> Doing<'a, Outcome> {
        Box::pin(async move {
            match self.0.pool.lane().await {
                Ok(lane) => {
                    let bought = self.buy(&lane, want).await;
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
