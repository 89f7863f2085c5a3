use soldonce_testkit::PATIENCE;
use soldonce_testkit::postgres::{PgBouncer, Postgres, PostgresPair, query};
use soldonce_testkit::until;

#[test]
fn a_postgres_has_a_database_per_test_and_leaves_nothing_behind() {
    let server = Postgres::start().unwrap();
    let (one, other) = (server.database().unwrap(), server.database().unwrap());
    let url = server.url_of(&one);
    query(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)").unwrap();
    assert_eq!(query(&url, "SELECT n, n + 1 FROM t").unwrap(), "7|8");
    let missing = query(&server.url_of(&other), "SELECT n FROM t").unwrap_err();
    assert!(missing.to_string().contains("does not exist"), "{missing}");
    let language = server.query("SHOW lc_messages").unwrap();
    assert_eq!(language, "C", "not that of the user");
    let folder = server.query("SHOW data_directory").unwrap();
    drop(server);
    assert!(!std::path::Path::new(&folder).exists());
}

#[test]
fn what_was_committed_survives_an_immediate_stop_and_a_kill() {
    let mut server = Postgres::options().durable().start().unwrap();
    assert_eq!(server.query("SHOW fsync").unwrap(), "on");
    server
        .query("CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
        .unwrap();
    server.stop_immediately().unwrap();
    assert!(server.query("SELECT 1").is_err());
    server.restart().unwrap();
    server.query("INSERT INTO t VALUES (2)").unwrap();
    server.kill().unwrap();
    server.restart().unwrap();
    assert_eq!(server.query("SELECT sum(n) FROM t").unwrap(), "3");
}

#[test]
fn a_paused_postgres_answers_later() {
    let mut server = Postgres::start().unwrap();
    let url = server.url();
    server.pause().unwrap();
    let asked = std::thread::spawn(move || query(&url, "SELECT 1"));
    let status = format!("/proc/{}/stat", server.pid());
    let stopped = || std::fs::read_to_string(&status).unwrap().contains(") T ");
    until("the process is stopped", PATIENCE, stopped).unwrap();
    server.resume().unwrap();
    assert_eq!(asked.join().unwrap().unwrap(), "1");
}

#[test]
fn a_promoted_standby_lacks_what_came_after_the_cut() {
    let mut pair = PostgresPair::start().unwrap();
    pair.primary
        .query("CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
        .unwrap();
    pair.await_sync().unwrap();
    assert!(pair.standby.query("INSERT INTO t VALUES (2)").is_err());
    pair.cut().unwrap();
    pair.primary.query("INSERT INTO t VALUES (2)").unwrap();
    pair.primary.stop_immediately().unwrap();
    pair.promote().unwrap();
    assert_eq!(pair.standby.query("SELECT sum(n) FROM t").unwrap(), "1");
    pair.standby.query("INSERT INTO t VALUES (3)").unwrap();
}

#[test]
fn a_bouncer_shares_connections_between_transactions() {
    let server = Postgres::start().unwrap();
    let bouncer = PgBouncer::start(&server, 1).unwrap();
    let url = bouncer.url_of("postgres");
    let pid = || query(&url, "SELECT pg_backend_pid()").unwrap();
    assert_eq!(pid(), pid());
}
