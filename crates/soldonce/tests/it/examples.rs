//! The examples do what they are there to show: each as a process, against a server of its own.
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use fake_stripe::FakeStripe;
use serde_json::{Value, json};
use soldonce_testkit::{PATIENCE, Port, until};

use crate::crash::client::{Ask, Client};
use crate::crash::server::{ADMIN_KEY, PROGRAM, Server};
use crate::program::ends_well;
use crate::shop::{done, hall};
use crate::store::folder;

/// An example, built with the tests.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).unwrap().join("examples");
    Command::new(built.join(name))
}

/// An example that runs until it is dropped.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    /// The address in the first line of one that listens.
    fn address(&mut self) -> SocketAddr {
        let line = self.line();
        let rest = line.strip_prefix("http://").unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A server with an event `hamlet` of twenty seats, until it is dropped.
struct Served {
    server: Server,
    client: Client,
    folder: PathBuf,
}

impl Served {
    fn start(name: &str, more: &[&str]) -> Self {
        let folder = folder(&format!("examples-{name}"));
        let mut command = Command::new(PROGRAM);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.join("data"))
            .args(more);
        let server = Server::run(command, &folder.join("server")).unwrap();
        let mut client = server.client("shop");
        post(&mut client, "/v1/events", hall("hamlet", 2, 10));
        Self {
            server,
            client,
            folder,
        }
    }

    /// Sells a seat as a shop that was paid elsewhere; returns the id of the hold.
    fn sell(&mut self, seat: &str) -> String {
        let wish = json!({"holder": "ann", "units": [{"seat": seat}]});
        let made = post(&mut self.client, "/v1/events/hamlet/holds", wish);
        let hold = made["id"].as_str().unwrap().to_owned();
        post(
            &mut self.client,
            &format!("/v1/holds/{hold}/confirm"),
            json!({}),
        );
        hold
    }

    fn end(self) {
        self.server.stop();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

fn post(client: &mut Client, path: &str, body: Value) -> Value {
    done(client, &Ask::post(path, body).keyed(path))
}

#[test]
fn embed_sells_two_seats_at_each_start() {
    let folder = folder("examples-embed");
    for _ in 0..2 {
        let output = example("embed").arg(folder.join("data")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let booking: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(booking["state"], "confirmed");
        assert_eq!(booking["lines"].as_array().unwrap().len(), 2);
    }
    assert_whole(&folder.join("data"));
    std::fs::remove_dir_all(&folder).unwrap();
}

fn assert_whole(data: &Path) {
    ends_well(Command::new(PROGRAM).args(["verify", "--data"]).arg(data));
}

#[test]
fn lease_in_axum_writes_one_report_at_a_time() {
    let mut command = example("lease_in_axum");
    command.arg("127.0.0.1:0");
    let mut running = Running::start(command);
    let address = running.address();
    let report = || {
        let mut client = Client::new(address, ADMIN_KEY, "web");
        let ask = Ask::new("POST", "/report".to_owned(), None);
        client.ask(&ask).unwrap().status
    };
    assert_eq!(report(), 200);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8).map(|_| scope.spawn(report)).collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(statuses.contains(&200), "{statuses:?}");
    let is_known = |status: &u16| [200, 409].contains(status);
    assert!(statuses.iter().all(is_known), "{statuses:?}");
}

#[test]
fn watch_feed_shows_the_seats_and_then_each_commit() {
    let mut served = Served::start("feed", &["--shoppers", "open", "--free-sales", "off"]);
    let mut command = example("watch_feed");
    command.args([&format!("http://{}/", served.server.address), "hamlet"]);
    let mut running = Running::start(command);
    let seats = running.line();
    assert!(seats.contains("\"free\":20"), "{seats}");
    served.sell("A-1");
    let (held, sold) = (running.line(), running.line());
    assert!(held.contains("held") && held.contains("A-1"), "{held}");
    assert!(sold.contains("sold") && sold.contains("A-1"), "{sold}");
    served.end();
}

#[test]
fn receive_webhook_takes_signed_messages_and_no_others() {
    let mut served = Served::start("webhook", &["--webhook-destinations", "any"]);
    let port = Port::reserve().unwrap();
    let address = format!("127.0.0.1:{}", port.number());
    let endpoint = json!({"url": format!("http://{address}/hooks")});
    let made = post(&mut served.client, "/v1/webhook-endpoints", endpoint);
    let mut command = example("receive_webhook");
    command.args([&address, made["secret"].as_str().unwrap()]);
    let mut running = Running::start(command);
    let address = running.address();
    let hold = served.sell("A-1");
    let message: Value = serde_json::from_str(&running.line()).unwrap();
    assert!(message.to_string().contains(&hold), "{message}");
    let forged = Ask::post("/hooks", message);
    let refused = Client::new(address, ADMIN_KEY, "forger").ask(&forged);
    assert_eq!(refused.unwrap().status, 401);
    served.end();
}

#[test]
fn sell_with_stripe_sells_what_the_card_paid() {
    let fake = FakeStripe::start().unwrap();
    let url = fake.url();
    let stripe = [
        ["--stripe-url", &url],
        ["--stripe-key", fake.secret_key()],
        ["--stripe-webhook-secret", fake.webhook_secret()],
    ];
    let served = Served::start("stripe", stripe.as_flattened());
    let soldonce = served.server.address;
    fake.deliver_to(&format!("http://{soldonce}/v1/webhooks/stripe"))
        .unwrap();
    let mut command = example("sell_with_stripe");
    command
        .args(["127.0.0.1:0", &format!("http://{soldonce}"), ADMIN_KEY])
        .args(["hamlet", fake.publishable_key()]);
    let mut running = Running::start(command);
    let mut buyer = Client::new(running.address(), ADMIN_KEY, "buyer");
    let page = buyer.ask(&Ask::get("/".to_owned())).unwrap();
    assert!(
        String::from_utf8(page.body)
            .unwrap()
            .contains(fake.publishable_key())
    );
    let wanted = json!({"seat": "A-1", "buyer": "ann"});
    let begun = done(&mut buyer, &Ask::post("/purchases", wanted));
    let intent = fake.intents()[0]["id"].as_str().unwrap().to_owned();
    assert!(fake.is_paid_with(&intent, begun["client_secret"].as_str().unwrap()));
    let path = format!("/purchases/{}", begun["booking"].as_str().unwrap());
    let mut state = || buyer.ask(&Ask::get(path.clone())).unwrap().json()["state"].clone();
    assert_eq!(state(), "pending_payment");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(fake.pay(&intent, "pm_card_visa")).unwrap();
    until("the seat is sold", PATIENCE, || state() == "confirmed").unwrap();
    served.end();
}
