//! Events of one database keep each other waiting for nothing: one whose memory is taken, or cannot be
//! read, or that the database refuses, stays behind alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{Command, Commit, Event, EventNo, Hold, HoldState, Rejection, Seq};
use soldonce_engine::ledger::{Ledger, Observer};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::{PATIENCE, until};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::Servers;
use crate::ledgers::{held, holder, on, transaction, wait_for_numbers};

/// The ledger's time goes on by eleven minutes: every hold is over.
const ELEVEN_MINUTES: &str = "UPDATE clock SET at = at + 660000";

/// The last number that one server has shown of each event.
#[derive(Default)]
struct FeedSeqs(Mutex<BTreeMap<EventNo, Seq>>);

impl FeedSeqs {
    fn has(&self, event: &Event, seq: u64) -> bool {
        self.0.lock().unwrap().get(&event.no) >= Some(&Seq(seq))
    }
}

impl Observer for FeedSeqs {
    fn numbered(&self, commits: &[Commit]) {
        for commit in commits {
            self.0.lock().unwrap().insert(commit.event, commit.seq);
        }
    }
}

/// A server, and a second one whose feed is watched, behind a proxy; two events.
struct Pair {
    servers: Servers,
    proxy: FaultProxy,
    shown: Arc<FeedSeqs>,
    sick: Arc<Event>,
    well: Arc<Event>,
}

impl Pair {
    async fn start() -> Self {
        let mut servers = Servers::start(1).await;
        let sick = servers.event(|_| {}).await;
        let well = servers.event_named("othello-1").await;
        let shown = Arc::new(FeedSeqs::default());
        let proxy = FaultProxy::to(servers.database.address()).unwrap();
        let url = proxy.url(&servers.database.url(), servers.database.address());
        let options = servers.unprepared_at(url);
        let opened = servers.open(&options, shown.clone()).await;
        servers.ledgers.push(Arc::new(opened.unwrap()));
        Self {
            servers,
            proxy,
            shown,
            sick,
            well,
        }
    }

    /// Sweeps at the second server until it has written down that this hold is over.
    async fn swept(&self, hold: &Hold) {
        let limit = SystemClock.boot().plus(PATIENCE);
        while SystemClock.boot() < limit {
            let sweep = self.servers.ask(1, Command::Sweep { limit: 512 }).await;
            assert!(sweep.is_ok(), "others have their turn: {sweep:?}");
            let now = self.servers.ledgers[0].hold(hold.id).await.unwrap();
            if now.is_some_and(|hold| hold.state == HoldState::Expired) {
                return;
            }
        }
        panic!("a hold that is over was not written down");
    }

    fn shown(&self, event: &Event, seq: u64) {
        let has = || self.shown.has(event, seq);
        until("a commit is shown", PATIENCE, has).unwrap();
    }
}

/// A connection of another program, in a transaction.
struct Other {
    client: Client,
    _reading: JoinSet<()>,
}

impl Other {
    async fn begin(servers: &Servers, sql: &str) -> Self {
        let url = servers.database.url();
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        let mut reading = JoinSet::new();
        reading.spawn(async move { drop(connection.await) });
        let begin = format!("BEGIN; {sql}");
        client.batch_execute(&begin).await.unwrap();
        Self {
            client,
            _reading: reading,
        }
    }

    async fn end(self) {
        self.client.batch_execute("COMMIT").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_whose_memory_is_taken_keeps_no_other_waiting() {
    let pair = Pair::start().await;
    let (servers, sick, well) = (&pair.servers, &pair.sick, &pair.well);
    servers.hold(1, sick, "ann", &["A-1"]).await.unwrap();
    let over = servers.hold(1, well, "ann", &["A-1"]).await.unwrap();
    // Neither the batch nor the first question for it is heard: ten seconds.
    pair.proxy.next_with("-- give_up", Fault::HalfOpen);
    pair.proxy.next_with("-- store_batch", Fault::HalfOpen);
    let wish = servers.wish(sick, "bob", &["A-5"]);
    let ledger = Arc::clone(&servers.ledgers[1]);
    let mut asked = JoinSet::new();
    asked.spawn(async move { held(ledger.transact(transaction(wish, None)).await) });
    let is_sent = || pair.proxy.to_come() == 1;
    until("a batch is on its way", PATIENCE, is_sent).unwrap();
    servers.hold(0, sick, "eve", &["A-2"]).await.unwrap();
    servers.hold(0, well, "eve", &["A-2"]).await.unwrap();
    pair.shown(well, 2);
    // By now a command waits for the memory.
    servers.hold(0, well, "eve", &["A-3"]).await.unwrap();
    pair.shown(well, 3);
    servers.database.query(ELEVEN_MINUTES).unwrap();
    pair.swept(&over).await;
    assert!(asked.try_join_next().is_none(), "the memory is taken still");
    assert!(!pair.shown.has(sick, 2), "read while it was taken");
    asked.join_next().await.unwrap().unwrap().unwrap();
    pair.shown(sick, 3);
    servers.judge(1, &sick.id).await;
    servers.judge(1, &well.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_cannot_be_read_or_written_stays_behind_alone() {
    let pair = Pair::start().await;
    let (servers, sick, well) = (&pair.servers, &pair.sick, &pair.well);
    let last = servers.hold(1, sick, "ann", &["A-1"]).await.unwrap();
    let over = servers.hold(1, well, "ann", &["A-1"]).await.unwrap();
    pair.shown(sick, 1);
    let query = |sql: &str| servers.database.query(sql).unwrap();
    // Nothing is numbered, and so nothing is read, until the row is damaged.
    let quiet = "LOCK TABLE sequencer IN EXCLUSIVE MODE";
    let other = Other::begin(servers, quiet).await;
    servers.hold(0, sick, "eve", &["A-2"]).await.unwrap();
    servers.hold(0, well, "eve", &["A-2"]).await.unwrap();
    let unit = format!("event_no = {} AND unit_no = 1", sick.no.0);
    let damage = |owner: &str| {
        format!(
            "SET session_replication_role = replica; UPDATE units SET owner = {owner} WHERE {unit}"
        )
    };
    query(&damage("'short'"));
    query(&format!(
        "ALTER TABLE holds ADD CONSTRAINT sick CHECK (event_no <> {} OR state <> 4)",
        sick.no.0
    ));
    other.end().await;
    pair.shown(well, 2);
    query(ELEVEN_MINUTES);
    pair.swept(&over).await;
    assert!(!pair.shown.has(sick, 2), "its row cannot be read");
    // Mended, it goes on by itself.
    let eve = "(SELECT to_owner FROM audit WHERE event_no = units.event_no AND unit_no = 1)";
    query(&damage(eve));
    query("ALTER TABLE holds DROP CONSTRAINT sick");
    pair.shown(sick, 2);
    pair.swept(&last).await;
    servers.judge(1, &sick.id).await;
    servers.judge(1, &well.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_the_feed_that_cannot_be_read_keeps_no_other_event_waiting() {
    let pair = Pair::start().await;
    let (servers, sick, well) = (&pair.servers, &pair.sick, &pair.well);
    let query = |sql: &str| servers.database.query(sql).unwrap();
    let sick_no = sick.no.0;
    query(&format!(
        "CREATE FUNCTION damage() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN NEW.hash = 'short'; RETURN NEW; END $$;
         CREATE TRIGGER damage BEFORE INSERT ON feed FOR EACH ROW WHEN (NEW.event_no = {sick_no})
             EXECUTE FUNCTION damage()"
    ));
    servers.hold(0, sick, "eve", &["A-2"]).await.unwrap();
    servers.hold(0, well, "eve", &["A-2"]).await.unwrap();
    pair.shown(well, 1);
    assert!(!pair.shown.has(sick, 1), "its row cannot be read");
    // Mended, it goes on by itself.
    query(&format!(
        "DROP TRIGGER damage ON feed; SET session_replication_role = replica;
         UPDATE feed f SET hash = h.hash FROM feed_heads h
         WHERE h.event_no = f.event_no AND f.event_no = {sick_no}"
    ));
    pair.shown(sick, 1);
    servers.judge(1, &sick.id).await;
    servers.judge(1, &well.id).await;
}

/// Its row is damaged, or a newer server wrote it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_cannot_be_read_keeps_no_other_from_being_known() {
    let mut servers = Servers::start(1).await;
    let sick = servers.event(|_| {}).await;
    let well = servers.event_named("othello-1").await;
    let new = servers.event_named("macbeth-1").await;
    let last = servers.hold(0, &sick, "ann", &["A-1"]).await.unwrap();
    wait_for_numbers(&servers.options.url, || {});
    let quiet = Other::begin(&servers, "LOCK TABLE sequencer IN EXCLUSIVE MODE").await;
    servers.hold(0, &sick, "ann", &["A-2"]).await.unwrap();
    // None of its commits has a number yet.
    servers.hold(0, &new, "ann", &["A-1"]).await.unwrap();
    servers.ledgers.remove(0).close().await;
    let query = |sql: &str| servers.database.query(sql).unwrap();
    let prices = query("SELECT prices FROM events WHERE event_no = 0");
    query("UPDATE events SET prices = '[]' WHERE event_no IN (0, 2)");
    quiet.end().await;
    for _ in 0..2 {
        let ledger = servers.one_more(&servers.options).await;
        servers.ledgers.push(ledger);
    }
    // Commits of others come behind its own, so those get their numbers, too.
    wait_for_numbers(&servers.options.url, || {});
    let release = Command::Release { on: on(&last) };
    for command in [servers.wish(&sick, "bob", &["A-3"]), release] {
        let refused = servers.ask(1, command).await;
        assert!(matches!(refused, Err(Rejection::ReadOnly)), "{refused:?}");
    }
    servers.hold(1, &well, "bob", &["A-1"]).await.unwrap();
    let later = servers.event_named("lear-1").await;
    servers.hold(1, &later, "bob", &["A-1"]).await.unwrap();
    servers.judge(1, &well.id).await;
    servers.judge(1, &later.id).await;
    let repair = format!("UPDATE events SET prices = '{prices}' WHERE event_no IN (0, 2)");
    servers.database.query(&repair).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_holds_does_not_wait_for_an_event_whose_memory_is_taken() {
    let pair = Pair::start().await;
    let (servers, sick, well) = (&pair.servers, &pair.sick, &pair.well);
    let mut own = vec![
        servers.hold(1, sick, "ann", &["A-1"]).await.unwrap().id,
        servers.hold(1, well, "ann", &["A-1"]).await.unwrap().id,
    ];
    let row = format!(
        "SELECT FROM units WHERE event_no = {} AND unit_no = 4 FOR UPDATE",
        sick.no.0
    );
    let other = Other::begin(servers, &row).await;
    let wish = servers.wish(sick, "bob", &["A-5"]);
    let ledger = Arc::clone(&servers.ledgers[1]);
    let mut asked = JoinSet::new();
    asked.spawn(async move { held(ledger.transact(transaction(wish, None)).await) });
    let waits = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted";
    let has_come = || servers.database.query(waits).is_ok_and(|some| some == "t");
    until("the memory is taken", PATIENCE, has_come).unwrap();
    let listed = servers.ledgers[1]
        .holds_of(holder("ann"), (None, 10))
        .await
        .unwrap();
    let strangers = servers.ledgers[1]
        .holds_of(holder("zoe"), (None, 10))
        .await
        .unwrap();
    assert!(asked.try_join_next().is_none(), "the memory is taken still");
    own.sort_unstable();
    own.reverse();
    assert_eq!(listed.iter().map(|hold| hold.id).collect::<Vec<_>>(), own);
    assert!(strangers.is_empty());
    other.end().await;
    asked.join_next().await.unwrap().unwrap().unwrap();
    servers.judge(1, &sick.id).await;
}
