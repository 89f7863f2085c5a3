//! Waiting for a condition, never for a time: the only clock and the only sleep of the test kit.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::block_in_place;

/// How long a test waits, on a busy machine, for what takes milliseconds on an idle one. Only a
/// test that fails waits so long.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Time between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(1);

/// Polls `condition` about each millisecond until it is true. Fails after `patience`, with `what`.
pub fn until(what: &str, patience: Duration, mut condition: impl FnMut() -> bool) -> Result<()> {
    until_some(what, patience, || Ok(condition().then_some(())))
}

/// Polls `look` about each millisecond until it is `Some`. Fails as `look`, or after `patience`.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of the test kit that waits for real time"
)]
pub fn until_some<T>(
    what: &str,
    patience: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let began = Instant::now();
    off_the_runtime(|| {
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            let is_early = began.elapsed() <= patience;
            ensure!(is_early, "not within {patience:?}: {what}");
            std::thread::sleep(PAUSE);
        }
    })
}

/// Builds a runtime whose only thread is the one that waits in it.
pub fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Runs `work`, which blocks. On a thread of a multi-thread runtime, another thread runs its tasks
/// meanwhile: their time-outs go on.
pub(crate) fn off_the_runtime<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        Ok(_) | Err(_) => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_what_comes_and_not_for_what_does_not() {
        let mut looks = 0;
        until("three looks", PATIENCE, || {
            looks += 1;
            looks == 3
        })
        .unwrap();
        let error = until("the impossible", Duration::ZERO, || false).unwrap_err();
        assert!(error.to_string().contains("the impossible"), "{error}");
    }
}
