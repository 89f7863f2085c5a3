//! The scene that a lock alone does not survive: its holder looks at the seat, is stopped for longer than
//! the lease lives, and writes when it goes on. Meanwhile another buyer has the lease, and buys.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde::Serialize;
use soldonce_clock::{Clock, SystemClock};

use super::super::outcome::Outcome;
use super::super::plan::{Hall, Want};
use super::lease::{Lease, look_and_write, write};
use super::{Guards, Purchase, Textbook};

/// The ttl of the lease in the scene.
const TTL: Duration = Duration::from_millis(200);
/// Most retries of an acquire until the lease is over.
const LOOKS_MAX: u32 = 1_000;
/// Time between two of them.
const LOOK_EVERY: Duration = Duration::from_millis(5);

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

/// Runs the scene in a hall of its own.
pub(in super::super) async fn stop_the_holder(
    (strategy, guards): (&'static str, Guards),
    textbook: &Textbook,
    hall: &Hall,
) -> anyhow::Result<Scene> {
    textbook.fill(hall).await?;
    let [stopped, other] = [1, 2].map(|buyer| {
        let seats = vec![0];
        Purchase::new(hall, &Want { buyer, seats })
    });
    // A slow answer of the first three servers may take the whole life of a lease.
    let first = acquired(textbook, &stopped).await;
    let first = first.with_context(|| format!("{strategy}: no lease for the first"))?;
    // The holder is stopped here. Another buyer tries until the lease is over.
    let second = acquired(textbook, &other).await;
    let second = second.with_context(|| format!("{strategy}: the first lease does not end"))?;
    match look_and_write(&textbook.pool, &other, &second).await {
        Ok(Outcome::Won(_)) => {}
        ended => bail!("{strategy}: the other buyer got {ended:?}"),
    }
    // The holder goes on: it has looked before, and the lease was its own.
    let connection = textbook.pool.get().await?;
    let written = write(&connection, &stopped, &first).await;
    let (sold_twice, refused) = match written {
        Ok(Outcome::Won(_)) => (true, None),
        Ok(Outcome::Refused(why)) | Err(Outcome::Refused(why)) => (false, Some(why)),
        ended => bail!("{strategy}: the holder that was stopped got {ended:?}"),
    };
    Ok(Scene {
        strategy,
        guards,
        sold_twice,
        refused,
    })
}

/// Acquires a lease, with retries while it is refused.
async fn acquired(textbook: &Textbook, purchase: &Purchase) -> anyhow::Result<Lease> {
    for _ in 0..=LOOKS_MAX {
        let acquired = textbook.acquire(purchase, TTL).await;
        if let Some(lease) = acquired.map_err(|failed| anyhow!("{failed:?}"))? {
            return Ok(lease);
        }
        let next = SystemClock.boot().plus(LOOK_EVERY);
        SystemClock.sleep_until(next).await;
    }
    bail!("refused {LOOKS_MAX} times")
}
