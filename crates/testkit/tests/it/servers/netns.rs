use soldonce_testkit::netns::{Network, within};
use soldonce_testkit::postgres::{Postgres, query};
use soldonce_testkit::redis::{Redis, Reply};
use soldonce_testkit::{PATIENCE, until};

/// Whether a Redis at this address answers within a second.
fn answers(address: std::net::SocketAddr) -> bool {
    use std::io::{Read, Write};
    let second = std::time::Duration::from_secs(1);
    let Ok(mut stream) = std::net::TcpStream::connect_timeout(&address, second) else {
        return false;
    };
    stream.set_read_timeout(Some(second)).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    stream.read(&mut [0; 16]).is_ok_and(|length| length > 0)
}

/// Cuts a primary off, promotes its replica, and finds two primaries that differ.
fn split(network: &Network) -> anyhow::Result<()> {
    let primary = network.redis(Redis::options())?;
    let follows = Redis::options().replica_of(primary.address());
    let replica = network.redis(follows)?;
    primary.server.cli(&["SET", "early", "1"])?;
    until("the replica follows", PATIENCE, || {
        let value = replica.server.cli(&["GET", "early"]);
        value.is_ok_and(|value| value == "1")
    })?;
    primary.cut()?;
    assert!(!answers(primary.address()), "a cut server was reached");
    // Only one side was to be cut.
    until("the other side answers", PATIENCE, || {
        answers(replica.address())
    })?;
    replica.server.cli(&["REPLICAOF", "NO", "ONE"])?;
    primary.heal()?;
    until("the healed server answers", PATIENCE, || {
        answers(primary.address())
    })?;
    primary.server.cli(&["SET", "late", "1"])?;
    assert_eq!(replica.server.ask(&["GET", "late"])?, Reply::Nil);
    Ok(())
}

#[test]
fn a_primary_cut_off_from_its_replica_goes_on_alone() {
    within(split).unwrap();
}

#[test]
fn proxies_cut_as_well_where_namespaces_are_forbidden() {
    split(&Network::of_proxies()).unwrap();
}

#[test]
fn a_postgres_runs_in_a_namespace_of_any_user() {
    within(|network| {
        let station = network.postgres(Postgres::options())?;
        let url = station.reach(&station.server.url());
        assert_eq!(query(&url, "SELECT 1")?, "1");
        Ok(())
    })
    .unwrap();
}
