//! 64 waiters on one name, each holding it for 5 ms: how near to the ideal, which is 5 ms a hand-over
//! and nothing between, and how many commands the server ran for each. Timers are late, so the same
//! turns are also taken one after the other without any lock: the most that a lock can reach.

use std::error::Error;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use soldonce_lease::{Clock, SystemClock};
use tokio::task::JoinSet;

use super::Setting;
use super::peers::{Peers, TTL};
use super::table::{columns, median, permille, thousandths};

const WAITERS: usize = 64;
const TURNS: usize = 4;
const HELD: Duration = Duration::from_millis(5);
const HAND_OVERS: u64 = 256;

/// How a round went.
struct Round {
    took_us: u64,
    commands: u64,
}

pub(crate) async fn measure(setting: &Setting) -> Result<String, Box<dyn Error>> {
    let peers = Peers::connect(&setting.url).await?;
    let (mut ours, mut theirs, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setting.runs {
        alone.push(without_lock().await?);
        ours.push(round(&peers, setting, Who::Ours).await?);
        theirs.push(round(&peers, setting, Who::Rslock).await?);
    }
    let title = format!(
        "P9b: {WAITERS} waiters on one name, each {} ms",
        HELD.as_millis()
    );
    let heads = [
        "hand-overs/s",
        "ideal / taken",
        "no lock / taken",
        "commands/hand-over",
    ];
    let mut head = vec![title];
    head.extend(heads.map(str::to_owned));
    let mut rows = vec![head];
    let least = median(alone.iter().map(|round| round.took_us).collect());
    let all = [
        ("no lock", alone),
        ("soldonce-lease", ours),
        ("rslock", theirs),
    ];
    for (name, rounds) in all {
        let took = median(rounds.iter().map(|round| round.took_us).collect());
        let commands = median(rounds.iter().map(|round| round.commands).collect());
        let ideal = u64::try_from(HELD.as_micros())? * HAND_OVERS;
        rows.push(vec![
            name.to_owned(),
            (HAND_OVERS * 1_000_000 / took.max(1)).to_string(),
            thousandths(permille(ideal, took)),
            thousandths(permille(least, took)),
            thousandths(permille(commands, HAND_OVERS)),
        ]);
    }
    Ok(columns(&rows))
}

#[derive(Clone, Copy)]
enum Who {
    Ours,
    Rslock,
}

async fn round(peers: &Peers, setting: &Setting, who: Who) -> Result<Round, Box<dyn Error>> {
    let mut questions = peers.connection();
    let before = commands(&mut questions, who).await?;
    let begun = SystemClock.boot();
    let mut all = JoinSet::new();
    for _ in 0..WAITERS {
        let (peers, url) = (peers.clone(), setting.url.clone());
        all.spawn(async move {
            match who {
                Who::Ours => ours(&peers).await,
                Who::Rslock => rslock(&url).await,
            }
        });
    }
    while let Some(done) = all.join_next().await {
        done?;
    }
    let took_us = u64::try_from(SystemClock.boot().since(begun).as_micros())?;
    let commands = commands(&mut questions, who).await?.saturating_sub(before);
    Ok(Round { took_us, commands })
}

/// The turns one after the other, on a task as theirs are.
async fn without_lock() -> Result<Round, Box<dyn Error>> {
    let begun = SystemClock.boot();
    let mut turns = JoinSet::new();
    turns.spawn(async {
        for _ in 0..HAND_OVERS {
            hold().await;
        }
    });
    turns.join_all().await;
    let took_us = u64::try_from(SystemClock.boot().since(begun).as_micros())?;
    Ok(Round {
        took_us,
        commands: 0,
    })
}

async fn hold() {
    let clock = SystemClock;
    clock.sleep_until(clock.boot().plus(HELD)).await;
}

async fn ours(peers: &Peers) {
    for _ in 0..TURNS {
        let request = peers.locks.lease("hot").ttl(TTL);
        let lease = request.acquire().await.unwrap();
        hold().await;
        lease.release().await.unwrap();
    }
}

/// Its own settings: three tries, then an error, so its caller asks again.
async fn rslock(url: &str) {
    let manager = rslock::LockManager::new(vec![url]);
    for _ in 0..TURNS {
        let lock = loop {
            if let Ok(lock) = manager.lock(b"bench:hot", TTL).await {
                break lock;
            }
        };
        hold().await;
        manager.unlock(&lock).await;
    }
}

impl Who {
    /// The commands that it sends. The server counts commands inside scripts under the same names:
    /// our scripts run `SET`, which we never send.
    const fn sends(self) -> &'static [&'static str] {
        match self {
            Self::Ours => &["evalsha", "eval", "ssubscribe", "sunsubscribe"],
            Self::Rslock => &["evalsha", "eval", "set", "script|load"],
        }
    }
}

/// Commands that were sent so far: a script counts once, with all that it does inside.
async fn commands(connection: &mut MultiplexedConnection, who: Who) -> Result<u64, Box<dyn Error>> {
    let info: String = redis::cmd("INFO")
        .arg("commandstats")
        .query_async(connection)
        .await?;
    let calls = info.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let (calls, _) = rest.split_once(',')?;
        who.sends()
            .contains(&name)
            .then(|| calls.parse::<u64>().ok())?
    });
    Ok(calls.sum())
}
