//! The Redis of the shield: whether it answers, and soon enough to be waited for.

use std::time::Duration;

use soldonce_clock::{Clock, SystemClock};
use soldonce_engine::limits::REDIS_WAIT_MS;
use soldonce_lease::BackendError;

use super::Finding;
use crate::block_on;
use crate::serve::redis_shield;

pub(super) fn look(url: &str) -> anyhow::Result<Finding> {
    let shield = redis_shield("shield_url", url)?;
    let trip = block_on(async {
        // The first one connects.
        shield.redis().ping().await?;
        let begun = SystemClock.boot();
        shield.redis().ping().await?;
        Ok::<Duration, BackendError>(SystemClock.boot().since(begun))
    })?;
    let what = "shield";
    Ok(match trip {
        Err(error) => {
            let fix = "start it, or look at the network between; until then more requests reach the \
                        database, and nothing else is lost";
            Finding::wrong(what, error.to_string(), fix)
        }
        Ok(trip) if trip > Duration::from_millis(REDIS_WAIT_MS) => {
            let fix = "servers wait no longer than 50 ms for it: bring them together";
            Finding::remark(what, format!("answers in {} us", trip.as_micros()), fix)
        }
        Ok(trip) => Finding::good(what, format!("answers in {} us", trip.as_micros())),
    })
}
