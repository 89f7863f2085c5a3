//! What a server that takes leases tells of them.

use soldonce_testkit::redis::Redis;

use super::{ask, create, database, hold, logs, serve, shield};
use crate::crash::client::{Ask, Client};

/// The lines of `/metrics` about leases, without the times.
fn told(client: &mut Client) -> Vec<String> {
    let heard = ask(client, &Ask::get("/metrics".to_owned()));
    let text = String::from_utf8(heard.body).unwrap();
    let is_about = |line: &&str| line.starts_with("soldonce_lease") && !line.contains("_seconds_");
    text.lines().filter(is_about).map(str::to_owned).collect()
}

/// How many wishes for a lease ended so.
fn wishes(client: &mut Client, outcome: &str) -> u32 {
    let heard = ask(client, &Ask::get("/metrics".to_owned()));
    let text = String::from_utf8(heard.body).unwrap();
    let name = "soldonce_lease_wait_seconds_count";
    let name = format!(r#"{name}{{backend="redis",outcome="{outcome}"}} "#);
    let count = text.lines().find_map(|line| line.strip_prefix(&name));
    count.map_or(0, |count| count.parse().unwrap())
}

#[test]
fn leases_of_a_strategy_are_counted() {
    let (database, logs) = (database(), logs("leases"));
    let mut redis = Redis::start().unwrap();
    let strategy = ["--strategy", "lease", "--shield", "local"];
    let server = shield::serve(&database, &redis, &strategy, &logs.join("lease"));
    let mut client = server.client("ann");
    create(&mut client);
    assert_eq!(wishes(&mut client, "acquired"), 0);
    assert_eq!(ask(&mut client, &hold("ann", "A-1")).status, 201);
    assert_eq!(ask(&mut client, &hold("ann", "A-2")).status, 201);
    // One for each hold, and one for each time the ledger asked for a hold to be decided anew.
    assert!(wishes(&mut client, "acquired") >= 2);
    let lines = told(&mut client);
    for line in [
        "soldonce_leases_live 0",
        "soldonce_lease_renew_failures_total 0",
        r#"soldonce_leases_lost_total{reason="deadline"} 0"#,
        r#"soldonce_lease_unknown_total{op="acquire"} 0"#,
    ] {
        assert!(lines.iter().any(|told| told == line), "{line}: {lines:?}");
    }
    redis.kill().unwrap();
    assert_eq!(ask(&mut client, &hold("ann", "A-3")).status, 201);
    assert!(wishes(&mut client, "away") >= 1);
    let other = serve(&database, &logs.join("queue"));
    assert_eq!(told(&mut other.client("bob")), Vec::<String>::new());
}
