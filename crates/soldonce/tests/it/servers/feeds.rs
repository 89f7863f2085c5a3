//! Feeds between servers: what staff change at one server is told to readers at another one, and what a
//! reader gets whose server was started anew.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use soldonce_clock::{Clock, SystemClock};
use soldonce_testkit::PATIENCE;

use super::{SEATS, ask, create, database, hold, logs, serve, two_servers, until};
use crate::crash::client::{Ask, Client};
use crate::crash::server::{ADMIN_KEY, Server};

const EVENT: &str = "/v1/events/hamlet-1";
/// Within it a change of an event's terms is told on every server.
const TOLD: Duration = Duration::from_secs(1);

/// An open feed.
struct Feed(BufReader<TcpStream>);

impl Feed {
    fn open(server: &Server, after: &str) -> Self {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "GET {EVENT}/feed?after={after} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ADMIN_KEY}\r\n\r\n",
            server.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// The data of the next event of this name.
    fn next(&mut self, name: &str) -> Value {
        let (start, mut is_named) = (format!("event: {name}"), false);
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "no {name} came");
            is_named |= line.trim_end() == start;
            if let Some(data) = line.strip_prefix("data: ").filter(|_| is_named) {
                return serde_json::from_str(data).unwrap();
            }
        }
    }

    /// The commit of the next frame, as its `id` names it.
    fn frame(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "no frame came");
            if let Some(id) = line.strip_prefix("id: ") {
                return id.trim_end().to_owned();
            }
        }
    }
}

fn seq(client: &mut Client) -> u64 {
    until(client, SEATS, |seats| seats["seq"].is_u64())["seq"]
        .as_u64()
        .unwrap()
}

#[test]
fn terms_that_change_at_one_server_are_told_to_readers_at_another() {
    let (_database, one, two) = two_servers("feeds-terms");
    let (mut at_one, mut at_two) = (one.client("one"), two.client("two"));
    create(&mut at_one);
    let now = seq(&mut at_two);
    let mut feed = Feed::open(&two, &now.to_string());
    feed.next("event");
    let mut took = Vec::new();
    for ttl in [61_000, 62_000, 63_000, 64_000, 65_000] {
        let body = json!({"policy": {"hold_ttl_ms": ttl}});
        let changed = ask(
            &mut at_one,
            &Ask::new("PATCH", EVENT.to_owned(), Some(body)),
        );
        assert_eq!(changed.status, 200, "{}", changed.shown());
        let answered = SystemClock.boot();
        assert_eq!(feed.next("event")["policy"]["hold_ttl_ms"], ttl);
        took.push(SystemClock.boot().since(answered));
    }
    took.sort();
    assert!(took[2] < TOLD, "{took:?}");
}

/// The digest of a commit is the same at every server, however its commits are batched there.
#[test]
fn a_reader_goes_on_at_another_server() {
    let (_database, one, two) = two_servers("feeds-digests");
    let (mut at_one, mut at_two) = (one.client("one"), two.client("two"));
    create(&mut at_one);
    let first = seq(&mut at_two);
    let sales = 3;
    for n in 1..=sales {
        for (client, row) in [(&mut at_one, "A"), (&mut at_two, "B")] {
            let held = ask(client, &hold(&format!("{row}{n}"), &format!("{row}-{n}")));
            assert_eq!(held.status, 201, "{}", held.shown());
        }
    }
    let told = |server| {
        let mut feed = Feed::open(server, &format!("{first}&each=true"));
        (0..2 * sales).map(|_| feed.frame()).collect::<Vec<_>>()
    };
    assert_eq!(told(&one), told(&two));
}

/// A server that starts has the entries that come, and not those before: a reader takes a snapshot then.
#[test]
fn a_reader_of_a_server_that_was_started_anew_goes_on_or_takes_a_snapshot() {
    let (database, logs) = (database(), logs("feeds-restart"));
    let server = serve(&database, &logs.join("first"));
    let mut client = server.client("first");
    create(&mut client);
    let old = seq(&mut client);
    assert_eq!(ask(&mut client, &hold("ann", "A-1")).status, 201);
    let is_numbered = |seats: &Value| seats["seq"].as_u64() > Some(old);
    until(&mut client, SEATS, is_numbered);
    let last = seq(&mut client);
    let digest = ask(&mut client, &Ask::get(SEATS.to_owned())).json()["digest"].clone();
    let digest = digest.as_str().unwrap();
    server.kill();

    let server = serve(&database, &logs.join("second"));
    let mut client = server.client("second");
    let shown = until(&mut client, SEATS, |seats| {
        seats["seq"].as_u64() == Some(last)
    });
    assert_eq!(shown["held"], json!(["A-1"]));
    let other = format!("{last}&digest=00000000");
    for missed in [&old.to_string(), &(last + 7).to_string(), &other] {
        let path = format!("{EVENT}/feed?after={missed}");
        let reset = ask(&mut client, &Ask::get(path));
        let told = String::from_utf8_lossy(&reset.body).into_owned();
        assert_eq!(told, format!("event: reset\ndata: {{\"seq\":{last}}}\n\n"));
    }
    let mut feed = Feed::open(&server, &format!("{last}&digest={digest}"));
    feed.next("event");
    assert_eq!(ask(&mut client, &hold("bob", "A-2")).status, 201);
    let (frame, next) = (feed.frame(), format!("{}.", last + 1));
    assert!(frame.starts_with(&next), "one is left out: {frame}");
}
