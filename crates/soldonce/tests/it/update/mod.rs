//! An update, as operators do it: a build of an older schema has sold, this one migrates, and on PostgreSQL
//! both sell for a while.
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

mod older;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::{PATIENCE, until_some};

use crate::crash::client::{Ask, Client, HttpAnswer};
use crate::crash::server::{PROGRAM, Server, arguments, verify};
use crate::program::ends_well;
use crate::shop::{self, done, hall, hold, until};
use crate::store::folder;

const HAMLET: &str = "/v1/events/hamlet";
const ROWS: &str = "CDEFGHIJ";
const SEATS_PER_ROW: usize = 20;

/// Runs a program on the database, and ends well.
fn run(program: &Path, command: &str, database: &Postgres) -> String {
    ends_well(Command::new(program).args([command, "--database-url", &database.url()]))
}

fn serve(program: &Path, database: &Postgres, log: &str) -> Server {
    let mut command = Command::new(program);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--accept-loss"])
        .args(["--limit-keys", "off", "--database-url", &database.url()]);
    Server::run(command, &folder("update").join(log)).unwrap()
}

fn serve_folder(program: &Path, data: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments(data));
    command
}

fn create(client: &mut Client, id: &str) {
    let hall = hall(id, 10, SEATS_PER_ROW);
    done(client, &Ask::post("/v1/events", hall));
}

fn confirm(held: &Value) -> Ask {
    shop::confirm(held).keyed(held["id"].as_str().unwrap())
}

/// Holds and buys a seat; gives the booking's id.
fn buy(client: &mut Client, event: &str, seat: &str) -> String {
    let held = done(client, &hold(event, "ann", seat));
    let booked = done(client, &confirm(&held));
    booked["id"].as_str().unwrap().to_owned()
}

fn cancel(client: &mut Client, booking: &str) {
    let path = format!("/v1/bookings/{booking}/cancel");
    done(client, &Ask::post(&path, json!({})).keyed(booking));
}

/// Holds a seat that another server gives back: that is seen within some milliseconds.
fn hold_in_the_end(client: &mut Client, seat: &str) -> Value {
    let held = until_some("the seat is free", PATIENCE, || {
        let heard = client.ask(&hold("hamlet", "dora", seat)).unwrap();
        Ok(heard.is_success().then(|| heard.json()))
    });
    held.unwrap()
}

/// What begins at one is known to the other and goes on there.
fn hand_over(from: &mut Client, to: &mut Client, row: char) {
    let seat = |n: u32| format!("{row}-{n}");
    let held = done(from, &hold("hamlet", "ann", &seat(1)));
    let refused = to.ask(&hold("hamlet", "bob", &seat(1))).unwrap();
    assert_eq!(refused.code(), "unit_unavailable", "{}", refused.shown());
    let booked = to.ask(&confirm(&held)).unwrap();
    assert_eq!(booked.status, 201, "{}", booked.shown());
    let again = from.ask(&confirm(&held)).unwrap();
    assert!(again.replayed, "{}", again.shown());
    assert_eq!(again.fixed(), booked.fixed());
    // Given back at one, sold again at the other.
    let booking = booked.json()["id"].as_str().unwrap().to_owned();
    cancel(from, &booking);
    let held = hold_in_the_end(to, &seat(1));
    let resold = done(to, &confirm(&held));
    let path = format!("/v1/bookings/{}", resold["id"].as_str().unwrap());
    let read = done(from, &Ask::get(path));
    assert_eq!(read["state"], "confirmed", "{read}");
    // A hold of one that ends is free at the other.
    let short = json!({"holder": "cid", "units": [{"seat": seat(2)}], "ttl_ms": 1_000});
    done(from, &Ask::post(&format!("{HAMLET}/holds"), short));
    hold_in_the_end(to, &seat(2));
    let new = format!("made-by-{row}").to_lowercase();
    create(from, &new);
    buy(to, &new, "A-1");
}

/// Fields that one sets are in force at both, and stay in the row though the other does not know them.
fn change_terms(old: &mut Client, new: &mut Client, database: &Postgres) {
    let patch = |client: &mut Client, policy: Value| {
        let body = json!({"policy": policy});
        done(client, &Ask::new("PATCH", HAMLET.to_owned(), Some(body)))
    };
    patch(new, json!({"listed": false, "hold_ttl_ms": 60_000}));
    let changed = patch(old, json!({"units_per_hold_max": 7}));
    assert_eq!(changed["policy"]["listed"], Value::Null, "{changed}");
    for client in [old, new] {
        until(client, HAMLET, |event| {
            event["policy"]["hold_ttl_ms"] == 60_000 && event["policy"]["units_per_hold_max"] == 7
        });
    }
    let stored = database.query("SELECT policy FROM events WHERE id = 'hamlet'");
    let stored: Value = serde_json::from_str(&stored.unwrap()).unwrap();
    assert_eq!(stored["listed"], false, "{stored}");
}

/// One buyer wants every seat of the last rows.
fn want_all(client: &mut Client, who: &str, won: &AtomicUsize) {
    for row in ROWS.chars() {
        for seat in 1..=SEATS_PER_ROW {
            let heard: HttpAnswer = client
                .ask(&hold("hamlet", who, &format!("{row}-{seat}")))
                .unwrap();
            if heard.status == 201 {
                done(client, &confirm(&heard.json()));
                won.fetch_add(1, Ordering::Relaxed);
            } else {
                assert_eq!(heard.code(), "unit_unavailable", "{}", heard.shown());
            }
        }
    }
}

#[test]
fn servers_of_two_schemas_sell_one_event_while_they_are_replaced() {
    let older = older::program();
    let database = Postgres::start().unwrap();
    run(&older, "migrate", &database);
    let before = serve(&older, &database, "old");
    let mut old = before.client("old");
    create(&mut old, "hamlet");
    let early = done(&mut old, &hold("hamlet", "early", "A-20"));
    let migrated = run(Path::new(PROGRAM), "migrate", &database);
    assert!(!migrated.contains("already"), "{migrated}");
    buy(&mut old, "hamlet", "A-19");

    let after = serve(Path::new(PROGRAM), &database, "new");
    let mut new = after.client("new");
    done(&mut new, &confirm(&early));
    hand_over(&mut old, &mut new, 'A');
    hand_over(&mut new, &mut old, 'B');
    change_terms(&mut old, &mut new, &database);

    let won = AtomicUsize::new(0);
    thread::scope(|scope| {
        for n in 0..4 {
            for server in [&before, &after] {
                let (who, won) = (format!("{}-{n}", server.id()), &won);
                let mut client = server.client(&who);
                scope.spawn(move || want_all(&mut client, &who, won));
            }
        }
    });
    let seats = ROWS.len() * SEATS_PER_ROW;
    assert_eq!(won.load(Ordering::Relaxed), seats, "every seat once");
    let sold = seats + 4;
    let is_all = |map: &Value| map["sold"].as_array().is_some_and(|all| all.len() == sold);
    let path = format!("{HAMLET}/seats");
    let maps = [&mut old, &mut new].map(|client| until(client, &path, is_all));
    assert_eq!(maps[0]["sold"], maps[1]["sold"]);

    assert!(before.stop().success());
    buy(&mut new, "hamlet", "A-18");
    let verified = run(Path::new(PROGRAM), "verify", &database);
    assert!(verified.contains("nothing is wrong"), "{verified}");
    drop(after);
    std::fs::remove_dir_all(folder("update")).unwrap();
}

#[test]
fn a_folder_of_an_older_schema_is_taken_over_and_refused_to_the_older_build() {
    let older = older::program();
    let place = folder("update-folder");
    let data = place.join("data");
    let server = Server::run(serve_folder(&older, &data), &data).unwrap();
    let mut client = server.client("old");
    create(&mut client, "hamlet");
    let booking = buy(&mut client, "hamlet", "A-1");
    let held = done(&mut client, &hold("hamlet", "bob", "A-2"));
    assert!(server.stop().success());

    let server = Server::start(&data).unwrap();
    let mut client = server.client("new");
    let read = done(&mut client, &Ask::get(format!("/v1/bookings/{booking}")));
    assert_eq!(read["state"], "confirmed", "{read}");
    let refused = client.ask(&hold("hamlet", "cid", "A-2")).unwrap();
    assert_eq!(refused.code(), "unit_unavailable", "{}", refused.shown());
    done(&mut client, &confirm(&held));
    let again = client.ask(&confirm(&held)).unwrap();
    assert!(again.replayed, "{}", again.shown());
    cancel(&mut client, &booking);
    buy(&mut client, "hamlet", "A-1");
    assert!(server.stop().success());
    verify(&data).unwrap();

    let refused = Server::run(serve_folder(&older, &data), &data)
        .err()
        .unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", refused.log);
    let why = "this program is older than the ledger, start a newer soldonce";
    assert!(refused.log.contains(why), "{}", refused.log);
    verify(&data).unwrap();
    std::fs::remove_dir_all(place).unwrap();
}
