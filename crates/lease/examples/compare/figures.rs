//! How fast each library is: alone, in a crowd, and at a hand-over.

use std::error::Error;
use std::time::Duration;

use soldonce_lease::{Clock, SystemClock};
use soldonce_testkit::redis::Redis;

use super::Setting;
use super::holder::{Holder, Interpreters, Peer};

const WAITERS: u64 = 64;
const TURNS: u64 = 4;
const WAKES: u64 = 11;

/// The middle one.
pub(crate) fn median<T: Copy + Ord + Default>(values: &mut [T]) -> T {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// 1234567 as `1,234,567`.
pub(crate) fn grouped(value: u64) -> String {
    match (value / 1_000, value % 1_000) {
        (0, rest) => rest.to_string(),
        (more, rest) => format!("{},{rest:03}", grouped(more)),
    }
}

/// A row for each figure: medians of the runs, each of which measures all libraries.
pub(crate) fn rows(
    setting: Setting,
    with: &Interpreters,
) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let server = Redis::start()?;
    let figure = |head: &str, measure: &dyn Fn(Peer) -> Result<u64, Box<dyn Error>>| {
        eprintln!("   {head}");
        let mut taken = vec![Vec::new(); Peer::ALL.len()];
        for _ in 0..setting.runs {
            for (peer, taken) in Peer::ALL.into_iter().zip(&mut taken) {
                taken.push(
                    measure(peer).map_err(|error| format!("{}, {head}: {error}", peer.name()))?,
                );
            }
        }
        let mut row = vec![head.to_owned()];
        row.extend(taken.iter_mut().map(|taken| grouped(median(taken))));
        Ok::<_, Box<dyn Error>>(row)
    };
    let pairs = |peer, tasks: u64| {
        let mut holder = Holder::start(peer, with, &server.url())?;
        let pairs: u64 = holder
            .ask(&format!("pairs {tasks} {}", setting.seconds * 1_000))?
            .parse()?;
        Ok(pairs / setting.seconds.max(1))
    };
    Ok(vec![
        figure("locks and unlocks a second, one task", &|peer| {
            pairs(peer, 1)
        })?,
        figure("the same, 64 tasks of a process", &|peer| {
            pairs(peer, WAITERS)
        })?,
        figure(
            "hand-overs a second, 64 tasks on one name, each holding it 5 ms",
            &|peer| {
                let mut holder = Holder::start(peer, with, &server.url())?;
                let took_us: u64 = holder.ask(&format!("turns {WAITERS} {TURNS}"))?.parse()?;
                Ok(WAITERS * TURNS * 1_000_000 / took_us.max(1))
            },
        )?,
        figure(
            "from the unlock to the next process, microseconds",
            &|peer| wake_us(peer, with, &server.url()),
        )?,
    ])
}

/// From the command to unlock until the next process says that it has the lock.
#[expect(
    clippy::disallowed_methods,
    reason = "a waiting process gives no sign that it waits"
)]
fn wake_us(peer: Peer, with: &Interpreters, url: &str) -> Result<u64, Box<dyn Error>> {
    let mut holders = (
        Holder::start(peer, with, url)?,
        Holder::start(peer, with, url)?,
    );
    holders.0.must("take wake 10000")?;
    let mut spans = Vec::new();
    for wake in 0..WAKES {
        let (has, waits) = (&mut holders.0, &mut holders.1);
        waits.tell("wait wake 10000")?;
        // Long enough to be waiting, and at another point of the pause between two tries each time.
        std::thread::sleep(Duration::from_millis(250 + 37 * wake));
        let begun = SystemClock.boot();
        has.tell("drop")?;
        let taken = waits.answer()?;
        spans.push(u64::try_from(SystemClock.boot().since(begun).as_micros())?);
        if taken != "yes" || has.answer()? != "done" {
            return Err(format!("the lock was not handed over: {taken}").into());
        }
        std::mem::swap(&mut holders.0, &mut holders.1);
    }
    Ok(median(&mut spans))
}
