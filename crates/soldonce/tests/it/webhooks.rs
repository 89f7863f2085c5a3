//! Webhooks with real processes: `serve` talks TLS to a receiver whose certificate counts, and is killed
//! while it delivers.
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use soldonce_clock::{Clock, SystemClock};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::webhooks::{Receiver, violations};
use soldonce_testkit::{Authority, Certificate, PATIENCE, Validity, until};

use crate::crash::client::{Ask, Client};
use crate::crash::server::{PROGRAM, Server};
use crate::program::ends_well;
use crate::shop::hall;
use crate::store::{Store, folder};

const ENDPOINTS: &str = "/v1/webhook-endpoints";
const BOOKINGS: usize = 40;
const KILLS: usize = 4;
/// Messages that arrive between two kills.
const STEPS: usize = 8;
/// Within it everything is delivered, though servers are killed: what the dead had taken falls to another one.
const REST: Duration = Duration::from_mins(1);
/// How long a delivery belongs to a server that was killed.
const CLAIM: Duration = Duration::from_secs(10);

fn serve(store: &Store, folder: &Path, roots: Option<PathBuf>) -> Server {
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(["--webhook-destinations", "any"])
        .args(store.served())
        .envs(roots.map(|file| ("SSL_CERT_FILE", file)));
    Server::run(command, &folder.join("server")).unwrap()
}

/// What was made or changed by a request with a key, in this life of the server or an earlier one;
/// nothing while no server answers.
fn post(client: &mut Client, path: &str, key: &str, body: Value) -> Option<Value> {
    let heard = client.ask(&Ask::post(path, body).keyed(key))?;
    assert!(heard.is_success(), "{path}: {}", heard.shown());
    Some(heard.json())
}

fn create(client: &mut Client) {
    post(client, "/v1/events", "hamlet-1", hall("hamlet-1", 2, 20)).unwrap();
}

/// Makes an endpoint; its path and its secret.
fn listen(client: &mut Client, receiver: &Receiver) -> (String, String) {
    let url = receiver.url();
    let made = post(client, ENDPOINTS, &url, json!({"url": url})).unwrap();
    let text = |member: &str| made[member].as_str().unwrap().to_owned();
    (format!("{ENDPOINTS}/{}", text("id")), text("secret"))
}

/// The newest deliveries of an endpoint.
fn log(client: &mut Client, endpoint: &str) -> Vec<Value> {
    let path = format!("{endpoint}/deliveries?limit=100");
    let heard = client.ask(&Ask::get(path)).unwrap();
    heard.json()["deliveries"].as_array().unwrap().clone()
}

/// Sells a seat; the booking's id.
fn sell(client: &mut Client, n: usize) -> Option<String> {
    let seat = format!("{}-{}", ["A", "B"][n / 20], n % 20 + 1);
    let body = json!({"holder": format!("buyer-{n}"), "units": [{"seat": seat}]});
    let path = "/v1/events/hamlet-1/holds";
    let held = post(client, path, &format!("hold-{n}"), body)?;
    let path = format!("/v1/holds/{}/confirm", held["id"].as_str()?);
    let booking = post(client, &path, &format!("confirm-{n}"), json!({}))?;
    Some(booking["id"].as_str()?.to_owned())
}

fn cancel(client: &mut Client, booking: &str) -> Option<Value> {
    let path = format!("/v1/bookings/{booking}/cancel");
    post(client, &path, booking, json!({}))
}

#[test]
fn messages_go_by_https_to_a_receiver_whose_certificate_counts() {
    let folder = folder("webhooks-tls");
    let authority = Authority::new().unwrap();
    let roots = authority.write(&folder).unwrap();
    let stranger = Authority::new().unwrap();
    let cases = [
        (authority.certify("localhost", Validity::Now), Value::Null),
        (
            authority.certify("elsewhere.example", Validity::Now),
            json!("certificate_of_another_name"),
        ),
        (
            authority.certify("localhost", Validity::Over),
            json!("certificate_expired"),
        ),
        (
            stranger.certify("localhost", Validity::Now),
            json!("certificate_not_trusted"),
        ),
        (
            Certificate::self_signed("localhost"),
            json!("certificate_not_trusted"),
        ),
    ];
    let store = Store::Folder(folder.join("data"));
    let server = serve(&store, &folder, Some(roots));
    let mut client = server.client("organiser");
    create(&mut client);
    let mut all = Vec::new();
    for (certificate, problem) in cases {
        let receiver = Receiver::start_encrypted(&certificate.unwrap()).unwrap();
        let made = listen(&mut client, &receiver);
        all.push((receiver, made, problem));
    }
    let booking = sell(&mut client, 0).unwrap();
    for (receiver, (endpoint, secret), problem) in &all {
        let tried = || log(&mut client, endpoint)[0]["attempts"] != 0;
        until("an attempt", PATIENCE, tried).unwrap();
        let row = &log(&mut client, endpoint)[0];
        assert_eq!(row["problem"], *problem, "{row}");
        if *problem == Value::Null {
            assert_eq!(row["state"], "delivered");
            let told = [(booking.clone(), "booking.confirmed".to_owned())];
            assert_eq!(violations(&receiver.received(), &[secret], &told), [""; 0]);
        } else {
            assert_eq!(row["state"], "open");
            assert_eq!(receiver.received(), [], "nothing is said to a stranger");
            assert_ne!(receiver.connections(), 0);
        }
    }
    drop(server);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Sells and cancels what is left until the server is gone or nothing is left.
fn sell_and_cancel(mut client: Client, told: &mut Vec<String>) {
    while told.len() < BOOKINGS {
        let Some(booking) = sell(&mut client, told.len()) else {
            return;
        };
        if cancel(&mut client, &booking).is_none() {
            return;
        }
        told.push(booking);
    }
}

/// Sells, delivers and is killed again and again; all of it must have arrived then.
fn deliver_and_kill(store: &Store, folder: &Path) {
    let receiver = Receiver::start().unwrap();
    let (mut told, mut endpoint, mut secret) = (Vec::new(), String::new(), String::new());
    for round in 0..=KILLS {
        let server = serve(store, folder, None);
        if round == 0 {
            let mut client = server.client("organiser");
            create(&mut client);
            (endpoint, secret) = listen(&mut client, &receiver);
        }
        // On a busy machine all may have arrived before a look at them.
        let goal = (receiver.received().len() + STEPS).min(2 * BOOKINGS);
        thread::scope(|scope| {
            let client = server.client("seller");
            scope.spawn(|| sell_and_cancel(client, &mut told));
            if round < KILLS {
                let enough = || receiver.received().len() >= goal;
                until("messages arrive", REST, enough).unwrap();
                server.signal_kill();
            }
        });
        if round == KILLS {
            let mut client = server.client("organiser");
            let mut all_arrived = || {
                let log = log(&mut client, &endpoint);
                log.len() == 2 * BOOKINGS && log.iter().all(|row| row["state"] == "delivered")
            };
            until("all is delivered", REST, &mut all_arrived).unwrap();
        }
    }
    let both = |booking: String| {
        let of = |kind: &str| (booking.clone(), kind.to_owned());
        [of("booking.confirmed"), of("booking.cancelled")]
    };
    let told: Vec<(String, String)> = told.into_iter().flat_map(both).collect();
    assert_eq!(violations(&receiver.received(), &[&secret], &told), [""; 0]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_server_killed_while_it_delivers_loses_no_message_and_turns_none_round() {
    let folder = folder("webhooks-kills");
    deliver_and_kill(&Store::Folder(folder.join("data")), &folder);
}

#[test]
fn nor_does_it_on_a_database() {
    deliver_and_kill(&migrated(), &folder("webhooks-kills-database"));
}

/// A database with the tables in it.
fn migrated() -> Store {
    let store = Store::Database(Postgres::start().unwrap());
    ends_well(Command::new(PROGRAM).arg("migrate").args(store.arguments()));
    store
}

/// What a server that is killed was delivering waits for another one as long as its claim lasts.
#[test]
fn what_a_killed_server_was_delivering_is_delivered_ten_seconds_later() {
    let (store, folder) = (migrated(), folder("webhooks-claim"));
    let killed = serve(&store, &folder, None);
    let mut client = killed.client("organiser");
    create(&mut client);
    // Takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks", silent.local_addr().unwrap());
    post(&mut client, ENDPOINTS, &url, json!({"url": url})).unwrap();
    sell(&mut client, 0).unwrap();
    silent.accept().unwrap();
    killed.kill();
    let died = SystemClock.boot();
    let _heir = serve(&store, &folder, None);
    silent.set_nonblocking(true).unwrap();
    until("another attempt", REST, || silent.accept().is_ok()).unwrap();
    // The claim, the start of a server, and perhaps a machine that stands still.
    let took = SystemClock.boot().since(died);
    assert!(took < 2 * CLAIM, "{took:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}
