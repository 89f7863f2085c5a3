//! `Leases` on real servers that are hurt: points 3 to 7 and 11 of `lease.md` 11.

mod aftermath;
mod cancel;
mod counter;
mod ends;
mod hung;
mod outcome;
mod paused;
mod requests;
mod site;
mod snapshot;
mod sources;
mod storm;
mod trial;

use std::fmt::Display;
use std::time::Duration;

use soldonce_lease::{Clock, SystemClock};

pub(crate) use sources::script;

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Long against anything that is answered, short against a test.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Looks until it is so; fails if it is not so within `limit`.
pub(super) async fn within(limit: Duration, what: impl Display, look: impl FnMut() -> bool) {
    within_by(&SystemClock, limit, what, look).await;
}

/// The same by another clock.
pub(super) async fn within_by(
    clock: &dyn Clock,
    limit: Duration,
    what: impl Display,
    mut look: impl FnMut() -> bool,
) {
    let end = clock.boot().plus(limit);
    while !look() {
        assert!(clock.boot() < end, "not within {limit:?}: {what}");
        rest(ms(10)).await;
    }
}

/// Lets other things happen for so long. Nothing may depend on what happens meanwhile.
pub(super) async fn rest(span: Duration) {
    SystemClock.sleep_until(SystemClock.boot().plus(span)).await;
}
