//! Copies of a ledger that sells meanwhile, and a server on one of them after the original is gone.
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};
use soldonce_testkit::postgres::{Archive, Postgres, carry_over};
use soldonce_testkit::{PATIENCE, until};

use crate::crash::client::{Ask, Client, HttpAnswer};
use crate::crash::server::{PROGRAM, Server, serving, verify};
use crate::operate::{migrated, serve, soldonce};
use crate::program::said;
use crate::shop::{self, done, hall};
use crate::store::folder;

const SELLERS: usize = 3;
/// Copies that are taken while seats are sold.
const COPIES: usize = 3;
/// Seats that are for sale from the end of one copy to that of the next, however long that one takes.
const PORTION: usize = 140;
const SEATS: usize = COPIES * PORTION;
/// The map of the event.
const MAP: &str = "/v1/events/hamlet-1/seats";

/// The exit code of the program, and what it says.
pub(crate) fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .env_remove("SOLDONCE_DATA")
        .env_remove("SOLDONCE_DATABASE_URL");
    said(&mut command)
}

/// What a copy says of itself.
fn backup(data: &Path, to: &Path) -> Value {
    let (data, to) = (data.display().to_string(), to.display().to_string());
    let (code, said) = run(&["backup", "--data", &data, "--to", &to, "--json"]);
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str(&said).unwrap()
}

fn create(client: &mut Client) {
    let ask = Ask::post("/v1/events", hall("hamlet-1", SEATS / 20, 20));
    done(client, &ask.keyed("hamlet-1"));
}

/// The seat of this number.
fn seat(n: usize) -> String {
    let row = char::from(b'A' + u8::try_from(n / 20).unwrap());
    format!("{row}-{}", n % 20 + 1)
}

/// Holds a seat.
fn hold(client: &mut Client, seat: &str, key: &str) -> HttpAnswer {
    let ask = shop::hold("hamlet-1", key, seat).keyed(key);
    client.ask(&ask).unwrap()
}

/// Confirms a hold.
fn confirm(client: &mut Client, hold: &Value, key: &str) -> HttpAnswer {
    client.ask(&shop::confirm(hold).keyed(key)).unwrap()
}

/// Sells the seats that are for sale until no more come.
fn sell(client: &mut Client, for_sale: &Mutex<Receiver<usize>>, sold: &AtomicUsize) {
    let next = || for_sale.lock().unwrap().recv();
    while let Ok(n) = next() {
        let held = hold(client, &seat(n), &format!("buyer-{n}"));
        assert!(held.is_success(), "{}", held.shown());
        let booked = confirm(client, &held.json(), &format!("sale-{n}"));
        assert!(booked.is_success(), "{}", booked.shown());
        sold.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_copy_of_a_ledger_that_sells_is_whole_and_starts() {
    let place = folder("backup-live");
    let data = place.join("data");
    let server = Server::start(&data).unwrap();
    create(&mut server.client("organiser"));
    let (seats, for_sale) = channel();
    let (for_sale, sold) = (Mutex::new(for_sale), AtomicUsize::new(0));
    let copies: Vec<Value> = thread::scope(|scope| {
        // A copy that fails ends the sale.
        let seats = seats;
        for n in 0..SELLERS {
            let mut client = server.client(&format!("seller-{n}"));
            let (for_sale, sold) = (&for_sale, &sold);
            scope.spawn(move || sell(&mut client, for_sale, sold));
        }
        let copy = |n: usize| {
            let at = sold.load(Ordering::Relaxed);
            for seat in n * PORTION..(n + 1) * PORTION {
                seats.send(seat).unwrap();
            }
            let more = || sold.load(Ordering::Relaxed) > at + SELLERS;
            until("seats are sold", PATIENCE, more).unwrap();
            backup(&data, &place.join(format!("copy-{n}")))
        };
        (0..COPIES).map(copy).collect()
    });
    assert_eq!(sold.into_inner(), SEATS);
    let mut last = 0;
    for copy in &copies {
        let commits = copy["last_commit"].as_u64().unwrap();
        assert!(commits > last, "{copy}");
        last = commits;
        assert_eq!(copy["verified"]["findings"], json!([]), "{copy}");
        assert_eq!(copy["verified"]["remarks"], json!([]), "{copy}");
    }
    assert!(server.stop().success());
    verify(&data).unwrap();
    // A copy is a ledger: it starts without a flag.
    let copy = place.join("copy-0");
    assert!(Server::start(&copy).unwrap().stop().success());
    std::fs::remove_dir_all(&place).unwrap();
}

/// What a till did before a copy and after it.
struct Story {
    /// A hold of the copy that was confirmed after it.
    kept: Value,
    /// Made and sold after it.
    lost: Value,
    lost_sale: Value,
    /// The last change of the event that the copy has, and its digest.
    copied: (u64, String),
    /// Made after it, not confirmed.
    open: Value,
    /// The last change of the event, and how it is told from another of its number.
    last: (u64, String),
}

impl Story {
    fn before(client: &mut Client) -> Value {
        create(client);
        hold(client, "A-1", "kept").json()
    }

    /// Four commits.
    fn after(client: &mut Client, kept: Value) -> Self {
        let copied = newest(client, 1);
        let lost = hold(client, "A-2", "lost").json();
        let lost_sale = confirm(client, &lost, "lost-sale").json();
        let open = hold(client, "A-3", "open").json();
        assert!(confirm(client, &kept, "kept-sale").is_success());
        Self {
            kept,
            lost,
            lost_sale,
            copied,
            open,
            last: newest(client, 5),
        }
    }

    /// What was made after the copy has no claim on the restored ledger, and its names are not taken for others.
    fn goes_on(&self, client: &mut Client) {
        // A reader that knows the last commit of the copy goes on.
        let (seq, digest) = &self.copied;
        assert_eq!(newest(client, *seq), self.copied);
        assert!(!is_reset(client, &format!("{seq}&digest={digest}")));
        // One that is ahead is sent for a new snapshot.
        let (seq, digest) = &self.last;
        assert!(is_reset(client, &seq.to_string()));
        // What is lost is unknown, and its units are free.
        let stale = confirm(client, &self.open, "open-sale");
        assert_eq!(
            (stale.status, stale.code().as_str()),
            (404, "hold_not_found")
        );
        let path = format!("/v1/bookings/{}", self.lost_sale["id"].as_str().unwrap());
        assert_eq!(client.ask(&Ask::get(path)).unwrap().status, 404);
        // The key of a command that is lost carries it out anew, with other names.
        let again = hold(client, "A-2", "lost");
        assert!(again.is_success() && !again.replayed, "{}", again.shown());
        assert_ne!(again.json()["id"], self.lost["id"]);
        let stale = confirm(client, &self.lost, "stale-sale");
        assert_eq!(stale.status, 404, "{}", stale.shown());
        let sold = confirm(client, &again.json(), "lost-sale");
        assert!(sold.is_success() && !sold.replayed, "{}", sold.shown());
        assert_ne!(sold.json()["id"], self.lost_sale["id"]);
        // What the copy has is as it was.
        assert!(confirm(client, &self.kept, "kept-sale").is_success());
        // So is a reader whose number was given again, if it says which commit it knows.
        for seat in ["A-3", "A-4"] {
            assert!(hold(client, seat, seat).is_success());
        }
        let (now, newest) = newest(client, seq + 1);
        assert!(is_reset(client, &format!("{seq}&digest={digest}")));
        assert!(!is_reset(client, &seq.to_string()));
        assert!(!is_reset(client, &format!("{now}&digest={newest}")));
    }
}

/// Waits until the newest commit has this number; returns it with its digest.
fn newest(client: &mut Client, seq: u64) -> (u64, String) {
    let shown = shop::until(client, MAP, |seats| seats["seq"] == seq);
    (seq, shown["digest"].as_str().unwrap().to_owned())
}

/// Tells whether a reader that knows this commit is sent for a new snapshot.
fn is_reset(client: &mut Client, known: &str) -> bool {
    let path = format!("/v1/events/hamlet-1/frames?after={known}");
    let heard = client.ask(&Ask::get(path)).unwrap();
    assert!(heard.is_success(), "{}", heard.shown());
    heard.json()["reset"] == json!(true)
}

#[test]
fn a_restored_ledger_sells_on_and_says_what_is_lost() {
    let place = folder("backup-restore");
    let (data, copy) = (place.join("data"), place.join("copy"));
    let server = Server::start(&data).unwrap();
    let mut client = server.client("till");
    let kept = Story::before(&mut client);
    let made = backup(&data, &copy);
    let story = Story::after(&mut client, kept);
    drop(client);
    server.kill();
    std::fs::remove_file(data.join("ledger.sqlite")).unwrap();
    // Where root runs this the folder is another user's, as that of a service; else the owner stays.
    chown(&data, Some(65_534), Some(65_534)).ok();
    let owner = data.metadata().unwrap().uid();
    let (from, to) = (copy.display().to_string(), data.display().to_string());
    let restore = ["restore", "--from", &from, "--data", &to];
    // SQLite would add the log that the killed server left to the copy.
    let (code, said) = run(&restore);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("there is a ledger in"), "{said}");
    for file in ["ledger.sqlite-wal", "ledger.sqlite-shm"] {
        std::fs::remove_file(data.join(file)).ok();
    }
    let (code, said) = run(&restore);
    assert_eq!(code, Some(0), "{said}");
    for file in data.read_dir().unwrap().map(Result::unwrap) {
        assert_eq!(file.metadata().unwrap().uid(), owner, "{file:?}");
    }
    let commits = made["last_commit"].as_u64().unwrap();
    for told in [
        &format!("it ends with commit {commits} of the ledger, made at "),
        "4 later commits were made and are lost",
        "soldonce reconcile",
        "nothing is wrong",
    ] {
        assert!(said.contains(told), "{told}: {said}");
    }
    let (code, said) = run(&restore);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("there is a ledger in"), "{said}");
    let server = Server::run(serving(&data), &data).unwrap();
    story.goes_on(&mut server.client("till"));
    assert!(server.stop().success());
    verify(&data).unwrap();
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_database_that_is_taken_back_to_a_point_in_time_sells_on() {
    let archive = Archive::new().unwrap();
    let database = archive.start_server().unwrap();
    soldonce(&["migrate"], &database);
    archive.back_up(&database).unwrap();
    let server = serve(&database, "point-in-time");
    let mut client = server.client("till");
    let kept = Story::before(&mut client);
    Archive::mark(&database).unwrap();
    let story = Story::after(&mut client, kept);
    drop((client, server, database));
    goes_on_in(&archive.restore().unwrap(), &story, "taken-back");
}

#[test]
fn a_database_that_is_restored_from_a_dump_sells_on() {
    let database = migrated();
    let server = serve(&database, "dumped");
    let mut client = server.client("till");
    let kept = Story::before(&mut client);
    let restored = Postgres::start().unwrap();
    carry_over(&database.url(), &restored.url()).unwrap();
    let story = Story::after(&mut client, kept);
    drop((client, server, database));
    goes_on_in(&restored, &story, "from-dump");
}

fn goes_on_in(database: &Postgres, story: &Story, log: &str) {
    let server = serve(database, log);
    story.goes_on(&mut server.client("till"));
    assert!(server.stop().success());
    let verified = soldonce(&["verify"], database);
    assert!(verified.contains("nothing is wrong"), "{verified}");
}

#[test]
fn what_cannot_be_copied_is_said() {
    let place = folder("backup-refused");
    let (data, copy) = (place.join("data"), place.join("copy"));
    let (from, to) = (data.display().to_string(), copy.display().to_string());
    let arguments = ["backup", "--data", &from, "--to", &to];
    let (code, said) = run(&arguments);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("there is no ledger in"), "{said}");
    assert!(!copy.exists(), "nothing is left of it");
    let (code, said) = run(&["restore", "--from", &from, "--data", &to]);
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("name the folder of a copy with --from"),
        "{said}"
    );
    let server = Server::start(&data).unwrap();
    create(&mut server.client("organiser"));
    assert!(server.stop().success());
    assert_eq!(run(&arguments).0, Some(0));
    let (code, said) = run(&arguments);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("there is a ledger in"), "{said}");
    // What does not know where it ends is not copied.
    let database = rusqlite::Connection::open(data.join("ledger.sqlite")).unwrap();
    database
        .execute("UPDATE head SET commits = commits + 1", [])
        .unwrap();
    drop(database);
    let other = place.join("other").display().to_string();
    let (code, said) = run(&["backup", "--data", &from, "--to", &other]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("nothing was copied"), "{said}");
    assert!(!place.join("other").exists(), "nothing is left of it");
    let url = ["backup", "--to", &other, "--database-url", "postgres://h/d"];
    let (code, said) = run(&url);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("pg_dump"), "{said}");
    std::fs::remove_dir_all(&place).unwrap();
}

/// A file may have fewer bytes than any ledger, as on a disk that is full.
#[test]
fn a_copy_that_was_cut_off_is_made_anew_in_the_same_folder() {
    let place = folder("backup-cut-off");
    let (data, copy) = (place.join("data"), place.join("copy"));
    assert!(Server::start(&data).unwrap().stop().success());
    let (from, to) = (data.display().to_string(), copy.display().to_string());
    let cut_off = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh", PROGRAM, "backup"]);
        said(shell.args(["--data", &from, "--to", &to]))
    };
    let (code, told) = cut_off("trap '' XFSZ; ulimit -f 128; exec \"$@\"");
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("nothing was copied"), "{told}");
    assert!(!copy.exists(), "nothing is left of it");
    // The signal of that limit ends the program at once.
    let (code, told) = cut_off("ulimit -c 0; ulimit -f 128; exec \"$@\"");
    assert_eq!(code, None, "{told}");
    assert!(!copy.join("ledger.sqlite").exists(), "half a copy is none");
    backup(&data, &copy);
    std::fs::remove_dir_all(&place).unwrap();
}
