//! What `soldonce lease run` says when a backend is not what its options tell: the address, the option,
//! and what to write instead.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use soldonce_clock::{Clock, SystemClock};
use soldonce_testkit::redis::{FullCoverage, Redis, RedisCluster};

use crate::crash::server::PROGRAM;
use crate::program;

/// The exit code of a run with these options, and what it said.
fn said(options: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command.args(["lease", "run", "nightly"]).args(options);
    program::said(command.args(["--", "echo", "ran"]))
}

#[track_caller]
fn assert_said(options: &[&str], code: i32, words: &[&str]) {
    let (ended, said) = said(options);
    assert_eq!(ended, Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
    assert!(!said.contains("secret"), "{said}");
}

/// A port that takes connections and says nothing, and its address.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// The limit of a call.
const CALL: Duration = Duration::from_secs(1);
/// How much longer than `--wait` says the help that a silent backend may take.
const LONGER: Duration = Duration::from_secs(4);
/// How long the machine may stand still meanwhile. A call without its limit would take half a minute.
const STALL: Duration = Duration::from_secs(15);

#[test]
fn a_silent_database_is_told_within_the_limit_of_a_call() {
    let (_listener, address) = silent();
    let url = format!("postgres://app:secret@{address}/app");
    let words = ["--database-url: ", &address, "more than 1000 ms"];
    for (options, most) in [
        (&["--database-url", &url][..], 2 * CALL),
        (&["--database-url", &url, "--wait", "2s"], 2 * CALL + LONGER),
    ] {
        let began = SystemClock.boot();
        assert_said(options, 113, &words);
        let took = SystemClock.boot().since(began);
        assert!(took < most + STALL, "{options:?}: {took:?}, not {most:?}");
    }
}

#[test]
fn a_lease_whose_token_cannot_be_anchored_was_surely_not_granted() {
    let (_listener, address) = silent();
    let database = format!("postgres://app:secret@{address}/app");
    let redis = Redis::start().unwrap();
    let options = ["--redis-url", &redis.url(), "--database-url", &database];
    assert_said(&options, 113, &["--database-url: ", &address, "400 ms"]);
}

#[test]
fn a_redlock_without_the_database_of_its_tokens() {
    let (_listener, address) = silent();
    let database = format!("postgres://app:secret@{address}/app");
    let servers = Redis::independent(3).unwrap();
    let urls: Vec<String> = servers.iter().map(Redis::url).collect();
    let redis = urls.iter().flat_map(|url| ["--redis-url", url]);
    let options: Vec<&str> = redis.chain(["--database-url", &database]).collect();
    let words = ["--database-url: ", &address, "more than 3000 ms"];
    assert_said(&options, 113, &words);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let url = "redis://app:secret@127.0.0.1:1";
    let words = ["--redis-url: ", "127.0.0.1:1", "refused"];
    assert_said(&["--redis-url", url], 113, &words);
    let thrice = [1, 2, 3].map(|port| format!("redis://127.0.0.1:{port}"));
    let options: Vec<&str> = thrice.iter().flat_map(|url| ["--redis-url", url]).collect();
    let words = ["0 of 3", "127.0.0.1:1: ", "127.0.0.1:2: ", "127.0.0.1:3: "];
    assert_said(&options, 113, &words);
    let cluster = ["--redis-url", "redis+cluster://127.0.0.1:1,127.0.0.1:2"];
    assert_said(&cluster, 113, &["--redis-url: ", "127.0.0.1:1,127.0.0.1:2"]);
}

#[test]
fn what_is_not_redis_is_called_so() {
    let (listener, address) = silent();
    std::thread::spawn(move || {
        // Answers when it is asked, and closes none: what a client still writes must reach a server.
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let asked = stream.read(&mut [0; 1_024]);
            if asked.is_ok_and(|bytes| bytes > 0) {
                let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
                stream.write_all(answer).ok();
            }
            open.push(stream);
        }
    });
    let url = format!("redis://{address}");
    assert_said(&["--redis-url", &url], 113, &[&address, "is not Redis"]);
}

#[test]
fn a_node_of_a_cluster_is_not_a_server_alone() {
    let cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
    let urls = cluster.urls();
    let moved = urls.iter().map(|url| said(&["--redis-url", url]));
    let moved: Vec<_> = moved.filter(|(code, _)| *code != Some(0)).collect();
    assert!(!moved.is_empty(), "no node has moved the name");
    for (code, said) in moved {
        assert_eq!(code, Some(113), "{said}");
        assert!(said.contains("write redis+cluster://"), "{said}");
    }
}

#[test]
fn a_wrong_password_of_a_cluster_is_told() {
    let users = "user default on >right ~* &* +@all\n";
    let redis = Redis::options().acl(users).start().unwrap();
    let url = format!("redis+cluster://:secret@{}", redis.address());
    let words = [
        "--redis-url: configuration: ",
        "Password authentication failed",
    ];
    assert_said(&["--redis-url", &url], 113, &words);
}

#[test]
fn a_server_that_is_named_twice_makes_no_redlock() {
    let servers = Redis::independent(2).unwrap();
    let (one, other) = (servers[0].url(), servers[1].url());
    let urls = [
        "--redis-url",
        &one,
        "--redis-url",
        &other,
        "--redis-url",
        &one,
    ];
    assert_said(&urls, 113, &["--redis-url: ", "one server"]);
}

#[test]
fn a_ttl_that_a_redlock_cannot_give_names_its_option() {
    let urls = [1, 2, 3].map(|port| format!("redis://127.0.0.1:{port}"));
    let redis = urls.iter().flat_map(|url| ["--redis-url", url]);
    let options: Vec<&str> = redis.chain(["--ttl", "2m"]).collect();
    assert_said(&options, 2, &["--ttl 120s", "--ttl-longest"]);
}
