//! Webhooks with real processes: `serve` talks TLS to whoever has a certificate that counts.
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use soldonce_testkit::webhooks::{Authority, Certificate, Receiver, Validity, violations};
use soldonce_testkit::{PATIENCE, until};

use crate::crash::client::{Ask, Client};
use crate::crash::server::{PROGRAM, Server};
use crate::store::{Store, folder};

const ENDPOINTS: &str = "/v1/webhook-endpoints";

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
/// nothing while nobody answers.
fn post(client: &mut Client, path: &str, key: &str, body: Value) -> Option<Value> {
    let ask = Ask::new("POST", path.to_owned(), Some(body)).keyed(key);
    let heard = client.ask(&ask)?;
    assert!(heard.is_success(), "{path}: {}", heard.shown());
    Some(heard.json())
}

fn create(client: &mut Client) {
    let body = json!({
        "id": "hamlet-1", "name": "Hamlet", "currency": "EUR",
        "chart": {"format": "grid", "rows": 2, "seats_per_row": 20, "category": "Standard"},
        "prices": {"Standard": 4_500},
    });
    post(client, "/v1/events", "hamlet-1", body).unwrap();
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

#[test]
fn messages_go_by_https_to_whoever_has_a_certificate_that_counts() {
    let folder = folder("webhooks-tls");
    let authority = Authority::new().unwrap();
    let roots = folder.join("roots.pem");
    std::fs::write(&roots, authority.pem()).unwrap();
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
