//! The scene that a lock alone does not survive: its holder looks at the seat, is stopped for longer than
//! the lease lives, and writes when it goes on. Meanwhile another buyer has the lease, and buys.

use std::time::Duration;

use anyhow::{Context, bail};
use serde::Serialize;
use soldonce_clock::{Clock, SystemClock};

use super::super::contender::{Doing, Outcome, Pool};
use super::super::plan::Hall;
use super::lease::{Granted, look_and_write, write};
use super::{Guards, Textbook, tables};

/// The lease of the scene.
const TTL: Duration = Duration::from_millis(200);
/// The buyer who is stopped, and the one who comes meanwhile.
const BUYERS: [i32; 2] = [1, 2];
/// Most looks whether the lease is over.
const LOOKS_MAX: u32 = 1_000;
/// Between two of them.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A strategy whose holder can be stopped between its lease and its write.
pub(in super::super) trait Stoppable: Textbook {
    /// Takes a lease on seats of a hall; none when another has it.
    fn acquire<'a>(
        &'a self,
        seats: (i32, &'a [i32]),
        ttl: Duration,
    ) -> Doing<'a, Result<Option<Granted>, Outcome>>;
}

/// How the scene ended.
#[derive(Clone, Debug, Serialize)]
pub(in super::super) struct Scene {
    pub(in super::super) strategy: &'static str,
    pub(in super::super) guards: Guards,
    /// Whether the seat was sold to both.
    pub(in super::super) sold_twice: bool,
    /// What refused the holder that was stopped.
    pub(in super::super) refused: Option<&'static str>,
}

/// Plays the scene in a hall of its own.
///
/// # Errors
/// When the servers do not do their part of it.
pub(in super::super) async fn stop_the_holder(
    (strategy, way): (&'static str, &dyn Stoppable),
    (pool, guards): (&Pool, Guards),
    hall: &Hall,
) -> anyhow::Result<Scene> {
    tables::fill(pool, hall).await?;
    let seats = (hall.number, &[0][..]);
    let first = acquired(way, seats)
        .await?
        .context("the first lease was refused")?;
    // The holder is stopped here. Another buyer comes until the lease is over.
    let mut looks = 0;
    let second = loop {
        if let Some(granted) = acquired(way, seats).await? {
            break granted;
        }
        looks += 1;
        if looks > LOOKS_MAX {
            bail!("{strategy}: a lease of {TTL:?} does not end");
        }
        SystemClock
            .sleep_until(SystemClock.boot().plus(LOOK_EVERY))
            .await;
    };
    let [stopped, other] = BUYERS;
    match look_and_write(pool, seats, (other, &second)).await {
        Ok(Outcome::Won(_)) => {}
        ended => bail!("{strategy}: the other buyer was answered {ended:?}"),
    }
    // The holder goes on: it has looked before, and the lease was its own.
    let connection = pool.get().await?;
    let written = write(&connection, seats, (stopped, &first)).await;
    let (sold_twice, refused) = match written {
        Ok(Outcome::Won(_)) => (true, None),
        Ok(Outcome::Refused(why)) | Err(Outcome::Refused(why)) => (false, Some(why)),
        ended => bail!("{strategy}: the holder that was stopped was answered {ended:?}"),
    };
    Ok(Scene {
        strategy,
        guards,
        sold_twice,
        refused,
    })
}

async fn acquired(way: &dyn Stoppable, seats: (i32, &[i32])) -> anyhow::Result<Option<Granted>> {
    let acquired = way.acquire(seats, TTL).await;
    acquired.map_err(|failed| anyhow::anyhow!("the lease is not to be had: {failed:?}"))
}
