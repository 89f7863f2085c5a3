//! Transactions that the database ends for the sake of others. The server asks again, but not
//! for ever, and what was ended wrote nothing.

use soldonce_core::Rejection;
use soldonce_testkit::postgres;

use crate::postgres::Servers;

/// More than a test asks.
const EVERY: u32 = 1_000_000;
/// How often a command is decided, at most.
const TRIES: u64 = 20;

/// A serialization failure and a deadlock.
const CODES: [&str; 2] = ["40001", "40P01"];

impl Servers {
    fn tell(&self, sql: &str) -> String {
        postgres::query(&self.database.url(), sql).unwrap()
    }

    /// From now on the database refuses so many batches with this code. Counted outside of transactions.
    fn refuse_next(&self, times: u32, code: &str) {
        self.tell(&format!(
            "CREATE SEQUENCE IF NOT EXISTS refusals;
             SELECT setval('refusals', 1, false);
             CREATE OR REPLACE FUNCTION refuse_batch() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF nextval('refusals') <= {times} THEN
                     RAISE EXCEPTION 'another goes first' USING ERRCODE = '{code}';
                 END IF;
                 RETURN NEW;
             END $$;
             CREATE OR REPLACE TRIGGER refuse_batch BEFORE INSERT ON batches
             FOR EACH ROW EXECUTE FUNCTION refuse_batch()"
        ));
    }

    /// How many batches were sent since.
    fn sent(&self) -> u64 {
        let sent = self.tell("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM refusals");
        sent.parse().unwrap()
    }

    /// Rows that a hold writes.
    fn written(&self) -> String {
        self.tell("SELECT (SELECT count(*) FROM audit), (SELECT count(*) FROM holds)")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_the_database_ends_are_tried_again_a_bounded_number_of_times() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    for (code, seat) in CODES.into_iter().zip(["A-1", "A-2"]) {
        servers.refuse_next(3, code);
        servers.hold(0, &event, "ann", &[seat]).await.unwrap();
        assert_eq!(servers.sent(), 4, "{code}");
        let before = servers.written();
        servers.refuse_next(EVERY, code);
        let refused = servers.hold(0, &event, "bob", &["B-1"]).await;
        assert_eq!(refused, Err(Rejection::Overloaded), "{code}");
        assert!((2..=TRIES).contains(&servers.sent()), "{}", servers.sent());
        assert_eq!(servers.written(), before, "{code}");
    }
    servers.refuse_next(0, "40001");
    servers.hold(0, &event, "bob", &["B-1"]).await.unwrap();
    assert_eq!(servers.judge(0, &event.id).await, 3);
}
