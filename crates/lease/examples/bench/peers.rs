//! The clients that lock and unlock, each by its name.

use std::error::Error;
use std::time::Duration;

use redis::Script;
use redis::aio::MultiplexedConnection;
use soldonce_lease::{Doctor, Lease, Leases};
use tokio::sync::oneshot;

pub(crate) const TTL: Duration = Duration::from_secs(10);

const ACQUIRE: &str = include_str!("../../src/backend/redis/scripts/grant.lua");
const RELEASE: &str = include_str!("../../src/backend/redis/scripts/release.lua");

const BARE_LOCK: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";
const BARE_UNLOCK: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                           return redis.call('DEL', KEYS[1]) end return 0";

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Bare,
    Scripts,
    /// The scripts over a connection that another thread reads and writes.
    ScriptsElsewhere,
    Ours,
    Rslock,
}

impl Peer {
    pub(crate) const ALL: [Self; 5] = [
        Self::Bare,
        Self::Scripts,
        Self::ScriptsElsewhere,
        Self::Ours,
        Self::Rslock,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare pair",
            Self::Scripts => "script pair",
            Self::ScriptsElsewhere => "script pair, by a thread",
            Self::Ours => "soldonce-lease",
            Self::Rslock => "rslock",
        }
    }
}

/// Everybody, connected to one server.
#[derive(Clone)]
pub(crate) struct Peers {
    connection: MultiplexedConnection,
    elsewhere: MultiplexedConnection,
    bare: (Script, Script),
    scripts: (Script, Script),
    pub(crate) locks: Leases,
    rslock: rslock::LockManager,
}

impl Peers {
    pub(crate) async fn connect(url: &str) -> Result<Self, Box<dyn Error>> {
        let client = redis::Client::open(url)?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        bind_fence(&mut connection).await?;
        let locks = Leases::redis(url).namespace("bench").doctor(Doctor::Off);
        let scripts = (Script::new(ACQUIRE), Script::new(RELEASE));
        Ok(Self {
            bare: (Script::new(BARE_LOCK), Script::new(BARE_UNLOCK)),
            scripts,
            locks: locks.connect().await?,
            rslock: rslock::LockManager::from_clients(vec![client.clone()]),
            connection,
            elsewhere: connect_elsewhere(client).await?,
        })
    }

    /// A connection for questions beside the measurement.
    pub(crate) fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    /// Locks the name that only this task uses, and unlocks it.
    pub(crate) async fn pair(&mut self, peer: Peer, task: usize) {
        match peer {
            Peer::Bare => self.bare_pair(task).await,
            Peer::Scripts => self.script_pair(self.connection.clone(), task).await,
            Peer::ScriptsElsewhere => self.script_pair(self.elsewhere.clone(), task).await,
            Peer::Ours => {
                let lease = self.lease(&format!("own-{task}")).await;
                lease.release().await.unwrap();
            }
            Peer::Rslock => {
                let name = format!("bench:rslock-{task}");
                let lock = self.rslock.lock(name.as_bytes(), TTL).await.unwrap();
                self.rslock.unlock(&lock).await;
            }
        }
    }

    async fn lease(&self, name: &str) -> Lease {
        self.locks
            .lease(name)
            .ttl(TTL)
            .try_acquire()
            .await
            .unwrap()
            .unwrap()
    }

    async fn bare_pair(&mut self, task: usize) {
        let (key, owner) = (format!("bench:bare-{task}"), format!("{task:032x}"));
        let (lock, unlock) = &self.bare;
        let mut lock = lock.key(&key);
        let taken: Option<String> = lock
            .arg(&owner)
            .arg(TTL.as_millis())
            .invoke_async(&mut self.connection)
            .await
            .unwrap();
        assert!(taken.is_some(), "{key} was taken");
        let mut unlock = unlock.key(&key);
        let freed: u8 = unlock
            .arg(&owner)
            .invoke_async(&mut self.connection)
            .await
            .unwrap();
        assert_eq!(freed, 1);
    }

    async fn script_pair(&self, mut connection: MultiplexedConnection, task: usize) {
        let lease = format!("sl:{{bench.raw}}:l:raw-{task}");
        let owner = format!("{task:032x}");
        let (acquire, release) = &self.scripts;
        let mut acquire = acquire.key("sl:{bench.raw}:f");
        acquire.key("sl:{bench.raw}:m").key(&lease);
        let (last,): (u64,) = acquire
            .arg(TTL.as_millis())
            .arg(900_000)
            .arg(0)
            .arg(&owner)
            .invoke_async(&mut connection)
            .await
            .unwrap();
        let mut release = release.key(&lease);
        let (freed,): (u8,) = release
            .arg(1)
            .arg(format!("{owner}|{:016}", last + 1))
            .arg("sl:{bench.raw}:w")
            .arg(format!("raw-{task}"))
            .invoke_async(&mut connection)
            .await
            .unwrap();
        assert_eq!(freed, 1);
    }
}

/// Binds the fence record of the raw scripts to this server, as an install does.
async fn bind_fence(connection: &mut MultiplexedConnection) -> Result<(), Box<dyn Error>> {
    let info: String = redis::cmd("INFO")
        .arg("replication")
        .query_async(connection)
        .await?;
    let id = info
        .lines()
        .find_map(|line| line.strip_prefix("master_replid:"));
    let id = id.ok_or("INFO shows no master_replid")?;
    let () = redis::cmd("SET")
        .arg("sl:{bench.raw}:f")
        .arg(format!("{:016}|{id}", 1_u64 << 32))
        .query_async(connection)
        .await?;
    Ok(())
}

/// A connection of a thread of its own, as `Leases` have one: it lives as long as the process.
async fn connect_elsewhere(client: redis::Client) -> Result<MultiplexedConnection, Box<dyn Error>> {
    let (ready, connection) = oneshot::channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(async {
            ready
                .send(client.get_multiplexed_async_connection().await)
                .ok();
            std::future::pending::<()>().await;
        });
    });
    Ok(connection.await??)
}
