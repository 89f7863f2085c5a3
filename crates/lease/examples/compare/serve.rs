//! The process of a holder in Rust: this crate and rslock, commanded by lines.

use std::error::Error;
use std::io::{BufRead as _, stdin};
use std::time::Duration;

use soldonce_lease::{BootTime, Clock, Lease, Leases, SystemClock};
use tokio::task::JoinSet;

use super::holder::Peer;

const TTL: Duration = Duration::from_secs(10);
const HELD: Duration = Duration::from_millis(5);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A library and what its process holds.
#[derive(Clone)]
enum Library {
    Ours(Leases),
    Rslock(rslock::LockManager),
}

enum Held {
    Ours(Lease),
    Rslock(rslock::Lock),
}

/// Answers commands until its input ends.
pub(crate) async fn serve(peer: Peer, url: &str) -> Outcome<()> {
    let library = match peer {
        Peer::Rslock => Library::Rslock(rslock::LockManager::new(vec![url])),
        Peer::Ours | Peer::RedisPy | Peer::NodeRedlock => {
            let leases = Leases::redis(url).namespace("compare");
            Library::Ours(leases.connect().await?)
        }
    };
    println!("ready");
    let mut held = None;
    for line in stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words.as_slice() {
            ["take", name, ttl] => {
                held = library.take(name, millis(ttl)?).await?;
                String::from(if held.is_some() { "yes" } else { "no" })
            }
            ["wait", name, ttl] => {
                held = Some(library.wait(name, millis(ttl)?).await);
                "yes".to_owned()
            }
            ["mine"] => library.mine(held.as_ref()).await,
            ["drop"] => {
                library
                    .release(held.take().ok_or("nothing is held")?)
                    .await?;
                "done".to_owned()
            }
            ["pairs", tasks, ms] => library
                .pairs(tasks.parse()?, millis(ms)?)
                .await?
                .to_string(),
            ["turns", tasks, turns] => library
                .turns(tasks.parse()?, turns.parse()?)
                .await?
                .to_string(),
            _ => return Err(format!("no command {line}").into()),
        };
        println!("{answer}");
    }
    Ok(())
}

fn millis(word: &str) -> Outcome<Duration> {
    Ok(Duration::from_millis(word.parse()?))
}

impl Library {
    async fn take(&self, name: &str, ttl: Duration) -> Outcome<Option<Held>> {
        Ok(match self {
            Self::Ours(leases) => leases
                .lease(name)
                .ttl(ttl)
                .try_acquire()
                .await?
                .map(Held::Ours),
            Self::Rslock(manager) => manager
                .lock(name.as_bytes(), ttl)
                .await
                .ok()
                .map(Held::Rslock),
        })
    }

    /// Waits for as long as it takes, also while the server is being replaced.
    async fn wait(&self, name: &str, ttl: Duration) -> Held {
        loop {
            let taken = match self {
                Self::Ours(leases) => leases
                    .lease(name)
                    .ttl(ttl)
                    .acquire()
                    .await
                    .ok()
                    .map(Held::Ours),
                Self::Rslock(manager) => {
                    let lock = manager.acquire_no_guard(name.as_bytes(), ttl).await;
                    lock.ok().map(Held::Rslock)
                }
            };
            if let Some(held) = taken {
                return held;
            }
            pause(Duration::from_millis(50)).await;
        }
    }

    async fn mine(&self, held: Option<&Held>) -> String {
        match (self, held) {
            (_, Some(Held::Ours(lease))) => lease
                .token()
                .map_or_else(|_| "no".to_owned(), |token| format!("yes {}", token.sql())),
            (Self::Rslock(manager), Some(Held::Rslock(lock))) => {
                let is_held = matches!(manager.is_freed(lock).await, Ok(false));
                String::from(if is_held { "yes" } else { "no" })
            }
            (Self::Ours(_), Some(Held::Rslock(_))) | (_, None) => "no".to_owned(),
        }
    }

    async fn release(&self, held: Held) -> Outcome<()> {
        match (self, held) {
            (_, Held::Ours(lease)) => {
                lease.release().await?;
            }
            (Self::Rslock(manager), Held::Rslock(lock)) => manager.unlock(&lock).await,
            (Self::Ours(_), Held::Rslock(_)) => return Err("not its own lock".into()),
        }
        Ok(())
    }

    /// How often `tasks` lock and unlock in `span`, each a name of its own.
    async fn pairs(&self, tasks: usize, span: Duration) -> Outcome<u64> {
        let end = SystemClock.boot().plus(span);
        let mut all = JoinSet::new();
        for task in 0..tasks {
            all.spawn(self.clone().pairs_of(format!("own-{task}"), end));
        }
        let mut pairs = 0;
        while let Some(done) = all.join_next().await {
            pairs += done??;
        }
        Ok(pairs)
    }

    async fn pairs_of(self, name: String, end: BootTime) -> Outcome<u64> {
        let mut pairs = 0;
        while SystemClock.boot() < end {
            let held = self.take(&name, TTL).await?;
            self.release(held.ok_or("an own name was taken")?).await?;
            pairs += 1;
        }
        Ok(pairs)
    }

    /// How many microseconds `tasks` need to take one name `turns` times each and hold it for 5 ms.
    async fn turns(&self, tasks: usize, turns: usize) -> Outcome<u128> {
        let begun = SystemClock.boot();
        let mut all = JoinSet::new();
        for _ in 0..tasks {
            all.spawn(self.clone().turns_of(turns));
        }
        while let Some(done) = all.join_next().await {
            done??;
        }
        Ok(SystemClock.boot().since(begun).as_micros())
    }

    async fn turns_of(self, turns: usize) -> Outcome<()> {
        for _ in 0..turns {
            let held = self.wait("hot", TTL).await;
            pause(HELD).await;
            self.release(held).await?;
        }
        Ok(())
    }
}

async fn pause(span: Duration) {
    SystemClock.sleep_until(SystemClock.boot().plus(span)).await;
}
