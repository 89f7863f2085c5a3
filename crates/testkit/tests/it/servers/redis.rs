use soldonce_testkit::redis::{Data, FullCoverage, Redis, RedisCluster, RedisPair, Reply};
use soldonce_testkit::{PATIENCE, until};

#[test]
fn a_redis_answers_and_leaves_nothing_behind() {
    let redis = Redis::start().unwrap();
    assert_eq!(redis.cli(&["SET", "a", "1"]).unwrap(), "OK");
    assert_eq!(redis.cli(&["GET", "a"]).unwrap(), "1");
    let folder = redis.cli(&["CONFIG", "GET", "dir"]).unwrap();
    let folder = folder.lines().last().unwrap().to_owned();
    // Its port is free for other tests once it is gone: its process is looked for.
    let process = format!("/proc/{}", redis.pid());
    for left in [&folder, &process] {
        assert!(std::path::Path::new(left).exists(), "{left}");
    }
    drop(redis);
    for left in [&folder, &process] {
        assert!(!std::path::Path::new(left).exists(), "{left}");
    }
}

#[test]
fn a_killed_redis_starts_again_with_its_log_or_without() {
    let mut redis = Redis::options().appendonly().start().unwrap();
    let replid = redis.info("master_replid").unwrap();
    redis.cli(&["SET", "a", "1"]).unwrap();
    redis.restart(Data::Kept).unwrap();
    assert_eq!(redis.cli(&["GET", "a"]).unwrap(), "1");
    assert_ne!(redis.info("master_replid").unwrap(), replid);
    redis.restart(Data::Lost).unwrap();
    assert_eq!(redis.ask(&["GET", "a"]).unwrap(), Reply::Nil);
    redis.kill().unwrap();
    assert!(redis.cli(&["PING"]).is_err());
    redis.restart(Data::Kept).unwrap();
    assert_eq!(redis.cli(&["PING"]).unwrap(), "PONG");
}

#[test]
fn a_restored_redis_has_what_it_had_and_nothing_later() {
    let mut redis = Redis::start().unwrap();
    redis.cli(&["SET", "a", "1"]).unwrap();
    let snapshot = redis.snapshot().unwrap();
    redis.cli(&["SET", "a", "2"]).unwrap();
    redis.cli(&["SET", "b", "2"]).unwrap();
    redis.restore(&snapshot).unwrap();
    assert_eq!(redis.cli(&["GET", "a"]).unwrap(), "1");
    assert_eq!(redis.ask(&["GET", "b"]).unwrap(), Reply::Nil);
}

#[test]
fn a_paused_redis_keeps_connections_and_answers_later() {
    let mut redis = Redis::start().unwrap();
    redis.pause().unwrap();
    let status = format!("/proc/{}/stat", redis.pid());
    let stopped = || std::fs::read_to_string(&status).unwrap().contains(") T ");
    until("the process is stopped", PATIENCE, stopped).unwrap();
    std::net::TcpStream::connect(redis.address()).unwrap();
    redis.resume().unwrap();
    assert_eq!(redis.cli(&["PING"]).unwrap(), "PONG");
}

#[test]
fn memory_and_users_are_bounded_as_asked() {
    let users = "user default on nopass ~* &* +@all\nuser app on >word ~sl:* &sl:* +get +set";
    let options = Redis::options().maxmemory("1kb").acl(users);
    let redis = options.line("hz 50").start().unwrap();
    assert_eq!(redis.cli(&["CONFIG", "GET", "hz"]).unwrap(), "hz\n50");
    let full = redis.ask(&["SET", "a", "1"]).unwrap();
    assert!(
        matches!(&full, Reply::Error(why) if why.starts_with("OOM")),
        "{full:?}"
    );
    let foreign = redis.ask_as("app", "word", &["GET", "a"]).unwrap();
    assert!(
        matches!(&foreign, Reply::Error(why) if why.starts_with("NOPERM")),
        "{foreign:?}"
    );
    let own = redis.ask_as("app", "word", &["GET", "sl:a"]).unwrap();
    assert_eq!(own, Reply::Nil);
}

#[test]
fn a_promoted_replica_lacks_what_came_after_the_cut() {
    let pair = RedisPair::start().unwrap();
    pair.primary.cli(&["SET", "early", "1"]).unwrap();
    pair.await_sync().unwrap();
    pair.cut().unwrap();
    pair.primary.cli(&["SET", "late", "1"]).unwrap();
    pair.promote().unwrap();
    assert_eq!(pair.replica.cli(&["GET", "early"]).unwrap(), "1");
    assert_eq!(pair.replica.ask(&["GET", "late"]).unwrap(), Reply::Nil);
    assert_eq!(pair.replica.info("role").unwrap().unwrap(), "master");
}

#[test]
fn five_servers_know_nothing_of_each_other() {
    let nodes = Redis::independent(5).unwrap();
    nodes[0].cli(&["SET", "a", "1"]).unwrap();
    for node in &nodes[1..] {
        assert_eq!(node.ask(&["GET", "a"]).unwrap(), Reply::Nil);
    }
}

#[test]
fn a_cluster_replaces_a_killed_primary() {
    let mut cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
    let home = cluster.node_of("a").unwrap();
    assert_eq!(cluster.primary_of("a").unwrap(), home);
    cluster.nodes()[home].cli(&["SET", "a", "1"]).unwrap();
    let moved = cluster.nodes()[(home + 1) % 3].ask(&["GET", "a"]).unwrap();
    assert!(
        matches!(&moved, Reply::Error(why) if why.starts_with("MOVED")),
        "{moved:?}"
    );
    cluster.fail_soon().unwrap();
    cluster.node(home).unwrap().kill().unwrap();
    until("the replica took over", PATIENCE, || {
        cluster.primary_of("a").is_ok_and(|place| place == home + 3)
            && cluster.nodes()[home + 3].cli(&["GET", "a"]).is_ok()
    })
    .unwrap();
    cluster.node(home).unwrap().restart(Data::Kept).unwrap();
    cluster.await_ok().unwrap();
}
