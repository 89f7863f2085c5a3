//! Money with real processes: `serve` with Stripe's double, killed while people pay, and
//! `soldonce reconcile` during it and after it.
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fake_stripe::FakeStripe;
use fake_stripe::money::{MoneyLine, violations};
use serde_json::{Value, json};
use soldonce_clock::{Clock, SystemClock};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::{PATIENCE, runtime, until};

use crate::crash::client::{Ask, Client};
use crate::crash::server::{PROGRAM, Server};
use crate::program::said;
use crate::shop::{PRICE, done, hall, hold};
use crate::store::{Store, folder};

const BUYERS: usize = 4;
const SEATS: usize = 48;
const KILLS: usize = 6;
/// Within it the money comes to rest, though servers are killed and notices are lost (L5).
const REST: Duration = Duration::from_mins(1);
/// Steps of buyers between two kills.
const STEPS: usize = 20;

/// A shop that takes money with Stripe's double.
struct Shop {
    fake: FakeStripe,
    store: Store,
    folder: PathBuf,
}

impl Shop {
    fn on_folder(name: &str) -> Self {
        let folder = folder(&format!("money-{name}"));
        Self {
            fake: FakeStripe::start().unwrap(),
            store: Store::Folder(folder.join("data")),
            folder,
        }
    }

    fn on_database(name: &str) -> Self {
        let database = Postgres::start().unwrap();
        let shop = Self {
            fake: FakeStripe::start().unwrap(),
            store: Store::Database(database),
            folder: folder(&format!("money-{name}")),
        };
        let (code, said) = shop.run(&["migrate"]);
        assert_eq!(code, Some(0), "{said}");
        shop
    }

    /// Serves, and has notices sent there.
    fn serve(&self) -> Server {
        let mut command = Command::new(PROGRAM);
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(self.store.served())
            .args(["--stripe-key", self.fake.secret_key()])
            .args(["--stripe-webhook-secret", self.fake.webhook_secret()])
            .args(["--stripe-webhook-secret", self.fake.second_webhook_secret()])
            .args(["--stripe-url", &self.fake.url()]);
        Server::run(command, &self.folder.join("server")).unwrap()
    }

    fn deliver_to(&self, server: &Server) {
        let url = format!("http://{}/v1/webhooks/stripe", server.address);
        self.fake.deliver_to(&url).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(PROGRAM);
        said(command.args(arguments).args(self.store.arguments()))
    }

    fn reconcile(&self, more: &[&str]) -> (Option<i32>, String) {
        self.reconcile_older(&[&["--older", "0"], more].concat())
    }

    fn reconcile_older(&self, more: &[&str]) -> (Option<i32>, String) {
        let url = self.fake.url();
        let fixed = ["reconcile", "--stripe-url", &url];
        let key = ["--stripe-key", self.fake.secret_key()];
        self.run(&[&fixed[..], &key[..], more].concat())
    }

    fn kept(&self) -> i64 {
        self.fake.money().values().map(MoneyLine::kept).sum()
    }
}

fn create(client: &mut Client) {
    let ask = Ask::post("/v1/events", hall("hamlet-1", 10, 20));
    done(client, &ask.keyed("hamlet-1"));
}

/// Holds a seat and begins payment, with keys that are the seat's: told again it is the same. The
/// intent, or nothing while no server answers.
fn check_out(client: &mut Client, n: usize) -> Option<String> {
    let seat = format!("{}-{}", char::from(b"ABCDEFGHJK"[n / 20]), n % 20 + 1);
    let ask = hold("hamlet-1", &format!("buyer-{n}"), &seat);
    let held = client.ask(&ask.keyed(&format!("hold-{n}")))?;
    let id = held.json()["id"].as_str()?.to_owned();
    let path = format!("/v1/holds/{id}/checkout");
    let ask = Ask::post(&path, json!({})).keyed(&format!("pay-{n}"));
    let begun = client.ask(&ask)?;
    Some(begun.json()["payment"]["intent"].as_str()?.to_owned())
}

fn pay(shop: &Shop, intent: &str) {
    // In an earlier life of the server it may have been paid already.
    let paid = shop.fake.pay(intent, "pm_card_visa");
    runtime().unwrap().block_on(paid).ok();
}

/// Buys what is left of a buyer's seats until the server is gone or nothing is left.
fn buy(shop: &Shop, mut client: Client, left: &mut Vec<usize>, steps: &AtomicUsize) {
    while let Some(seat) = left.last() {
        let Some(intent) = check_out(&mut client, *seat) else {
            return;
        };
        steps.fetch_add(1, Ordering::Relaxed);
        pay(shop, &intent);
        left.pop();
    }
}

/// Everybody buys, and the server is killed again and again meanwhile.
fn sell_and_kill(shop: &Shop) {
    let mut lists: Vec<Vec<usize>> = (0..BUYERS)
        .map(|buyer| (buyer..SEATS).step_by(BUYERS).collect())
        .collect();
    let steps = AtomicUsize::new(0);
    for round in 0..=KILLS {
        let server = shop.serve();
        shop.deliver_to(&server);
        if round == 0 {
            create(&mut server.client("organiser"));
        }
        let before = steps.load(Ordering::Relaxed);
        thread::scope(|scope| {
            for list in &mut lists {
                let client = server.client("buyer");
                scope.spawn(|| buy(shop, client, list, &steps));
            }
            if round < KILLS {
                let goal = (before + STEPS).min(before.max(SEATS - 1));
                let enough = || steps.load(Ordering::Relaxed) >= goal;
                until("people buy", PATIENCE, enough).unwrap();
                server.signal_kill();
            }
        });
        if round == KILLS {
            assert!(lists.iter().all(Vec::is_empty), "{lists:?}");
            let at_rest = || shop.reconcile(&["--dry-run"]).0 == Some(0);
            until("the money comes to rest", REST, at_rest).unwrap();
        }
        drop(server);
    }
}

fn judge(shop: &Shop) {
    let (code, said) = shop.run(&["verify"]);
    assert_eq!(code, Some(0), "{said}");
    let sold = i64::try_from(SEATS).unwrap() * PRICE;
    assert_eq!(shop.kept(), sold, "every seat was paid once");
    let reserved: i64 = shop.fake.money().values().map(MoneyLine::reserved).sum();
    assert_eq!(reserved, 0);
    assert_eq!(violations(&shop.fake.effects()), [""; 0]);
    std::fs::remove_dir_all(&shop.folder).unwrap();
}

#[test]
fn a_server_killed_while_people_pay_charges_each_once_and_sells_each_seat() {
    let shop = Shop::on_folder("kills");
    sell_and_kill(&shop);
    judge(&shop);
}

#[test]
fn nor_does_it_on_a_database() {
    let shop = Shop::on_database("kills-database");
    sell_and_kill(&shop);
    judge(&shop);
}

#[test]
fn reconcile_tells_what_is_wrong_and_settles_it() {
    let shop = Shop::on_folder("reconcile");
    let server = shop.serve();
    let mut client = server.client("ann");
    create(&mut client);
    // No notice says that it was paid.
    let intent = check_out(&mut client, 0).unwrap();
    pay(&shop, &intent);
    let (code, said) = shop.reconcile(&["--dry-run"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("paid, not fulfilled"), "{said}");
    assert!(said.contains("take note of `authorised`"), "{said}");
    let (code, said) = shop.reconcile(&[]);
    assert_eq!(code, Some(3), "the server has the folder: {said}");
    assert!(said.contains("--dry-run"), "{said}");
    server.stop();
    let (code, said) = shop.reconcile(&["--json"]);
    assert_eq!((code, shop.kept()), (Some(0), PRICE), "{said}");
    let found: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(found[0]["found"], "paid, not fulfilled");
    assert_eq!(found[1]["found"], "authorised, never captured");
    assert_eq!(found[1]["state"], "confirmed");
    assert_eq!(found[1]["outcome"], "settled");
    let (code, said) = shop.reconcile(&[]);
    assert_eq!(code, Some(0));
    assert!(said.starts_with("no payment is open: "), "{said}");
    std::fs::remove_dir_all(&shop.folder).unwrap();
}

/// A payment that was begun, whose hold has ended with no server to say so.
fn ended_unserved(shop: &Shop, paid: impl FnOnce(&str)) {
    let server = shop.serve();
    let mut client = server.client("ann");
    let mut hall = hall("hamlet-1", 10, 20);
    // Long enough to begin payment and to stop the server in, on a machine that stalls.
    hall["policy"] = json!({"hold_ttl_ms": 10_000, "payment_window_ms": 1_000});
    done(&mut client, &Ask::post("/v1/events", hall));
    let intent = check_out(&mut client, 0).unwrap();
    let over = SystemClock.boot().plus(Duration::from_millis(10_100));
    paid(&intent);
    server.stop();
    until("the hold is over", PATIENCE, || SystemClock.boot() > over).unwrap();
}

/// A payment link would stay open.
#[test]
fn reconcile_gives_up_what_ended_without_a_server() {
    let shop = Shop::on_folder("ended");
    ended_unserved(&shop, |_| {});
    let (code, said) = shop.reconcile_older(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(shop.fake.intents()[0]["status"], "canceled", "{said}");
    let (_, said) = shop.reconcile(&["--dry-run"]);
    assert!(said.starts_with("no payment is open: "), "{said}");
    std::fs::remove_dir_all(&shop.folder).unwrap();
}

/// The seat is still free: the step that would give the payment up must not undo what it bought.
#[test]
fn reconcile_sells_what_was_paid_and_unheard() {
    for shop in [
        Shop::on_folder("unheard"),
        Shop::on_database("unheard-database"),
    ] {
        ended_unserved(&shop, |intent| pay(&shop, intent));
        let (code, said) = shop.reconcile(&[]);
        assert_eq!((code, shop.kept()), (Some(0), PRICE), "{said}");
        let (_, said) = shop.reconcile(&["--dry-run"]);
        assert!(said.starts_with("no payment is open: "), "{said}");
        std::fs::remove_dir_all(&shop.folder).unwrap();
    }
}

#[test]
fn reconcile_says_what_it_lacks() {
    let shop = Shop::on_folder("lacks");
    let url = "https://127.0.0.1:1";
    let dry = ["reconcile", "--dry-run", "--stripe-url", url];
    let (code, said) = shop.run(&dry);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--stripe-key"), "{said}");
    let key = [&dry[..], &["--stripe-key", "nonsense"]].concat();
    let (code, said) = shop.run(&key);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("stripe_key"), "{said}");
    let none = [&dry[..], &["--stripe-key", "sk_test_0123456789"]].concat();
    let (code, said) = shop.run(&none);
    assert_eq!(code, Some(3), "no ledger there: {said}");
    std::fs::remove_dir_all(&shop.folder).unwrap();
}
