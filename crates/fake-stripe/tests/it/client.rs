//! A provider, and plain calls to it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fake_stripe::FakeStripe;
use fake_stripe::money::{MoneyLine, violations};
use serde_json::Value;
use soldonce_clock::ManualClock;
use soldonce_testkit::PATIENCE;
use soldonce_testkit::webhooks::Receiver;

/// 2026-01-01.
const BEGIN_MS: i64 = 1_767_225_600_000;

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) json: Value,
}

impl HttpAnswer {
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.json
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.json.pointer(pointer).and_then(Value::as_i64).unwrap()
    }
}

/// A provider whose clock stands still, and an endpoint for its notices. Dropping it judges: money
/// went only where it may.
pub(super) struct Rig {
    pub(super) stripe: Arc<FakeStripe>,
    pub(super) inbox: Receiver,
    pub(super) clock: ManualClock,
    bookings: AtomicU32,
}

impl Rig {
    pub(super) fn new() -> Self {
        let clock = ManualClock::at(BEGIN_MS);
        let stripe = FakeStripe::start_at(Arc::new(clock.clone())).unwrap();
        let inbox = Receiver::start().unwrap();
        stripe.deliver_to(&inbox.url()).unwrap();
        Self {
            stripe: Arc::new(stripe),
            inbox,
            clock,
            bookings: AtomicU32::new(1),
        }
    }

    pub(super) fn call(&self, method: &str, path: &str, body: &str) -> HttpAnswer {
        self.try_call(method, path, body, &self.authorised(""))
            .unwrap()
    }

    /// Header lines of a server, and these.
    pub(super) fn authorised(&self, lines: &str) -> String {
        let key = self.stripe.secret_key();
        format!("Authorization: Bearer {key}\r\n{lines}")
    }

    pub(super) fn with_key(&self, path: &str, body: &str, key: &str) -> Option<HttpAnswer> {
        let lines = self.authorised(&format!("Idempotency-Key: {key}\r\n"));
        self.try_call("POST", path, body, &lines)
    }

    /// An answer; nothing when the connection closed without one.
    pub(super) fn try_call(
        &self,
        method: &str,
        path: &str,
        body: &str,
        lines: &str,
    ) -> Option<HttpAnswer> {
        call(&self.stripe.url(), method, path, (body, lines))
    }

    /// An intent over 900 for a booking of its own, to be captured by hand.
    pub(super) fn intent(&self) -> String {
        let booking = self.bookings.fetch_add(1, Ordering::Relaxed);
        let form = format!(
            "amount=900&currency=eur&capture_method=manual&metadata%5Bbooking%5D=b{booking}"
        );
        let created = self.call("POST", "/v1/payment_intents", &form);
        assert_eq!(created.status, 200, "{}", created.json);
        created.text("/id").to_owned()
    }

    /// What a card makes of an intent.
    pub(super) fn pay(&self, intent: &str, card: &str) -> HttpAnswer {
        let path = format!("/v1/payment_intents/{intent}/confirm");
        self.call("POST", &path, &format!("payment_method={card}"))
    }

    pub(super) fn authorised_intent(&self) -> String {
        let intent = self.intent();
        assert_eq!(
            self.pay(&intent, "pm_card_visa").text("/status"),
            "requires_capture"
        );
        intent
    }

    pub(super) fn captured_intent(&self) -> String {
        let intent = self.authorised_intent();
        assert_eq!(
            self.step(&intent, "capture", "").text("/status"),
            "succeeded"
        );
        intent
    }

    pub(super) fn step(&self, intent: &str, step: &str, form: &str) -> HttpAnswer {
        self.call(
            "POST",
            &format!("/v1/payment_intents/{intent}/{step}"),
            form,
        )
    }

    pub(super) fn shown(&self, intent: &str) -> HttpAnswer {
        let path = format!("/v1/payment_intents/{intent}?expand%5B%5D=latest_charge");
        self.call("GET", &path, "")
    }

    pub(super) fn money(&self, intent: &str) -> MoneyLine {
        self.stripe.money().remove(intent).unwrap_or_default()
    }

    /// The kinds of the notices that came, in sequence.
    pub(super) fn kinds(&self) -> Vec<String> {
        let kind = |notice: Value| notice["type"].as_str().unwrap().to_owned();
        self.notices().into_iter().map(kind).collect()
    }

    pub(super) fn notices(&self) -> Vec<Value> {
        let received = self.inbox.received();
        let read = |body: Vec<u8>| serde_json::from_slice(&body).unwrap();
        received.into_iter().map(|one| read(one.body)).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let violations = violations(&self.stripe.effects());
            assert!(violations.is_empty(), "money went astray: {violations:#?}");
        }
    }
}

/// Waits for what another thread does.
pub(super) fn until(what: &str, condition: impl FnMut() -> bool) {
    soldonce_testkit::until(what, PATIENCE, condition).unwrap();
}

/// Calls a provider from any thread.
pub(super) fn call(url: &str, method: &str, path: &str, sent: (&str, &str)) -> Option<HttpAnswer> {
    let (body, lines) = sent;
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let kind = if body.starts_with('{') {
        "application/json"
    } else {
        "application/x-www-form-urlencoded"
    };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {length}\r\n{lines}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some(HttpAnswer {
        status: head.split_whitespace().nth(1)?.parse().unwrap(),
        head: head.to_ascii_lowercase(),
        json: serde_json::from_str(body).unwrap_or_default(),
    })
}
