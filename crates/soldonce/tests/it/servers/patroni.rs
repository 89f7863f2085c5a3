//! A PostgreSQL that Patroni keeps loses its primary in each way, while buyers buy at servers that have the address of
//! all its nodes: no acknowledged booking is lost, where commits wait for a second node.

use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use soldonce_clock::{BootTime, Clock, SystemClock};
use soldonce_testkit::netns::{Network, Patroni, within};
use soldonce_testkit::postgres::query;
use soldonce_testkit::until as wait_until;

use super::failover::{BACK_WITHIN, known, serve};
use super::{SEATS, TWICE, confirm, create_of, hold, logs, soldonce_at, until};
use crate::crash::client::Ask;
use crate::crash::server::Server;

/// Within this, a cluster that is left alone comes to a state that no buyer waits for.
const SETTLED_WITHIN: Duration = BACK_WITHIN.saturating_mul(2);
const SEATS_OF_A_ROW: usize = 900;
const BUYERS: usize = 4;

/// What becomes of the primary's node, or how it comes back.
type Step = fn(&mut Patroni, usize) -> Result<()>;

const LOSSES: [(&str, Step, Step); 5] = [
    ("killed", kill, restart),
    (
        "stopped",
        |all, node| all.nodes[node].server.pause(),
        |all, node| all.nodes[node].server.resume(),
    ),
    (
        "cut off",
        |all, node| all.nodes[node].cut(),
        |all, node| all.nodes[node].heal(),
    ),
    ("switched over", |all, _| all.switch_over(), |_, _| Ok(())),
    ("killed again", kill, restart),
];

fn kill(all: &mut Patroni, node: usize) -> Result<()> {
    all.nodes[node].server.kill()
}

fn restart(all: &mut Patroni, node: usize) -> Result<()> {
    all.nodes[node].server.restart()
}

/// A sale at two servers.
struct Sale {
    servers: [Server; 2],
    url: String,
    logs: PathBuf,
    next: AtomicUsize,
    /// Bookings that were acknowledged, and when.
    sold: Mutex<Vec<(String, BootTime)>>,
}

impl Sale {
    fn open(cluster: &Patroni, name: &str) -> Self {
        let (url, logs) = (cluster.url(), logs(name));
        soldonce_at(&["migrate"], &url);
        let servers = ["one", "two"].map(|name| serve(&url, &logs.join(name)));
        create_of(&mut servers[0].client("maker"), SEATS_OF_A_ROW);
        until(&mut servers[1].client("looker"), SEATS, |_| true);
        let (next, sold) = (AtomicUsize::new(0), Mutex::default());
        Self {
            servers,
            url,
            logs,
            next,
            sold,
        }
    }

    /// Sells one seat, however long it takes.
    fn sell(&self, server: &Server) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let row = char::from(b'A' + u8::try_from(number / SEATS_OF_A_ROW).unwrap());
        let seat = format!("{row}-{}", number % SEATS_OF_A_ROW + 1);
        let held = known(server, &seat, &hold(&seat, &seat).keyed(&seat));
        assert!(held.is_success(), "{seat}: {}", held.shown());
        let booked = known(server, &seat, &confirm(&held.json()));
        assert!(booked.is_success(), "{seat}: {}", booked.shown());
        let id = booked.json()["id"].as_str().unwrap().to_owned();
        self.sold.lock().unwrap().push((id, SystemClock.boot()));
    }

    fn sells(&self, count: usize, what: &str) {
        let sold = || self.sold.lock().unwrap().len();
        let from = sold();
        wait_until(what, SETTLED_WITHIN, || sold() >= from + count).unwrap();
    }

    /// Has buyers at both servers while `body` runs.
    fn while_buyers_buy<T>(&self, body: impl FnOnce() -> T) -> T {
        let is_over = &AtomicBool::new(false);
        thread::scope(|scope| {
            for server in self.servers.iter().cycle().take(BUYERS) {
                scope.spawn(move || self.sell_until(server, is_over));
            }
            // The scope waits for the buyers, also when the body fails.
            let done = catch_unwind(AssertUnwindSafe(body));
            is_over.store(true, Ordering::Relaxed);
            done.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    fn sell_until(&self, server: &Server, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            self.sell(server);
        }
    }

    /// The longest time without a sale since then.
    fn outage(&self, since: BootTime) -> Duration {
        let sold = self.sold.lock().unwrap();
        let mut last = since;
        let times = sold.iter().map(|(_, at)| *at).filter(|at| *at > since);
        let pauses = times.map(|at| at.since(std::mem::replace(&mut last, at)));
        pauses.max().unwrap_or_default()
    }

    /// The acknowledged bookings that a server which remembers nothing does not find.
    fn missing(&self) -> Vec<String> {
        let takes_writes = || query(&self.url, "SELECT 1").is_ok();
        wait_until("the database takes writes", SETTLED_WITHIN, takes_writes).unwrap();
        let judge = serve(&self.url, &self.logs.join("judge"));
        let sold = self.sold.lock().unwrap();
        let ids = sold.iter().map(|(id, _)| id);
        let is_lost = |id: &&String| {
            let found = known(&judge, "judge", &Ask::get(format!("/v1/bookings/{id}")));
            found.json()["state"] != "confirmed"
        };
        ids.filter(is_lost).cloned().collect()
    }
}

fn lose_primaries(network: &Network) -> Result<()> {
    let mut cluster = network.patroni("quorum")?;
    let sale = Sale::open(&cluster, "servers-patroni");
    let mut outages = File::options()
        .create(true)
        .append(true)
        .open(sale.logs.join("outages"))?;
    for (name, lose, heal) in LOSSES {
        let primary = cluster.primary().unwrap();
        let outage = sale.while_buyers_buy(|| {
            sale.sells(10, "something is sold");
            let lost = SystemClock.boot();
            lose(&mut cluster, primary).unwrap();
            // More than were acknowledged before and are counted now.
            sale.sells(2 * BUYERS, "the sale goes on");
            sale.outage(lost)
        });
        writeln!(outages, "{:.2} {name}", outage.as_secs_f64())?;
        // Patroni waits 20 s of it for a primary that may come back.
        assert!(outage < BACK_WITHIN, "{name}: {outage:?}");
        assert_ne!(cluster.primary(), Some(primary), "{name}");
        heal(&mut cluster, primary)?;
        cluster.await_whole()?;
        assert_eq!(sale.missing(), Vec::<String>::new(), "{name}");
    }
    let all =
        |seats: &Value| seats["sold"].as_array().unwrap().len() == sale.sold.lock().unwrap().len();
    for server in &sale.servers {
        until(&mut server.client("looker"), SEATS, all);
    }
    assert_eq!(query(&sale.url, TWICE)?, "0");
    soldonce_at(&["verify"], &sale.url);
    Ok(())
}

#[test]
fn a_quorum_has_every_booking_of_a_primary_that_is_lost() {
    within(lose_primaries).unwrap();
}

/// How many nodes have replayed every commit of the primary.
const FOLLOW: &str =
    "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()";

/// Where commits wait for no other node, the last one goes with its primary, and the test above would see it.
fn lose_a_booking(network: &Network) -> Result<()> {
    let mut cluster = network.patroni("off")?;
    let sale = Sale::open(&cluster, "servers-patroni-off");
    sale.sell(&sale.servers[0]);
    let follow = || query(&sale.url, FOLLOW).is_ok_and(|count| count == "2");
    wait_until("two nodes have everything", SETTLED_WITHIN, follow)?;
    let primary = cluster.primary().unwrap();
    let others: Vec<usize> = (0..3).filter(|node| *node != primary).collect();
    for node in &others {
        cluster.nodes[*node].cut()?;
    }
    sale.sell(&sale.servers[0]);
    kill(&mut cluster, primary)?;
    // Its kernel would go on sending what the dead process had written.
    cluster.nodes[primary].cut()?;
    for node in &others {
        cluster.nodes[*node].heal()?;
    }
    let leads = || cluster.primary().is_some_and(|node| node != primary);
    wait_until("another node leads", SETTLED_WITHIN, leads)?;
    let lost = sale.sold.lock().unwrap()[1].0.clone();
    assert_eq!(sale.missing(), [lost]);
    Ok(())
}

#[test]
fn without_synchronous_mode_an_acknowledged_booking_is_lost() {
    within(lose_a_booking).unwrap();
}
