//! What the provider tells, as the adapter reads it.

use fake_stripe::{Delivery, signature};
use serde_json::json;
use soldonce_core::{BookingId, PaymentState as P, Timestamp};
use soldonce_engine::payment::stripe::{WebhookError, WebhookSecrets, verify};
use soldonce_engine::payment::{Intent, IntentId, Notice, Subject};
use soldonce_testkit::webhooks::Received;

use super::rig::{BEGIN_MS, PRICE, Rig};

const SUCCEEDED: &str = "payment_intent.succeeded";

fn secrets(rig: &Rig) -> WebhookSecrets {
    let second = rig.fake.second_webhook_secret();
    WebhookSecrets::new(rig.fake.webhook_secret(), Some(second)).unwrap()
}

fn read(rig: &Rig, one: &Received) -> Result<Notice, WebhookError> {
    let now = Timestamp::from_ms(BEGIN_MS);
    verify(&one.body, &one.signature, &secrets(rig), now)
}

async fn all(rig: &Rig) -> Vec<Notice> {
    rig.fake.quiet().await;
    let received = rig.inbox.received();
    received.iter().map(|one| read(rig, one).unwrap()).collect()
}

fn in_full(notices: &[Notice], kind: &str) -> Option<Intent> {
    let notice = notices.iter().find(|notice| notice.kind == kind).unwrap();
    match notice.subject.clone().unwrap() {
        Subject::Intent(intent) => Some(*intent),
        Subject::Named(_) => None,
    }
}

#[tokio::test]
async fn every_step_is_told_of_its_intent() {
    let rig = Rig::new();
    let intent = rig.captured(7).await;
    rig.refund(&intent, 100, "refund").await.unwrap();
    let notices = all(&rig).await;
    for notice in &notices {
        let about = match notice.subject.as_ref().unwrap() {
            Subject::Intent(told) => &told.id,
            Subject::Named(id) => id,
        };
        assert_eq!(about, &intent, "{}", notice.kind);
        assert_eq!(notice.created_at, Some(Timestamp::from_ms(BEGIN_MS)));
        assert_eq!((notice.live, notice.account.as_ref()), (false, None));
    }
    let state = |kind| in_full(&notices, kind).map(|intent| intent.state);
    assert_eq!(state("payment_intent.created"), Some(P::Created));
    let authorised = "payment_intent.amount_capturable_updated";
    assert_eq!(state(authorised), Some(P::Authorised));
    assert_eq!(state("charge.refunded"), None, "to be retrieved");
    assert_eq!(state("refund.created"), None, "to be retrieved");
    let captured = in_full(&notices, SUCCEEDED).unwrap();
    let totals = (
        captured.amount.minor(),
        captured.captured.minor(),
        captured.refunded.minor(),
    );
    assert_eq!((captured.state, totals), (P::Captured, (PRICE, PRICE, 0)));
    assert_eq!(captured.booking, Some(BookingId::from_bits(7)));
    assert_eq!(captured.currency.as_str(), "EUR");
}

#[tokio::test]
async fn how_an_intent_ended_without_money_is_told_or_to_be_retrieved() {
    let rig = Rig::new();
    let intent = rig.created(1).await;
    rig.fake
        .pay(intent.as_str(), "pm_card_chargeDeclined")
        .await
        .unwrap();
    let voided = rig.authorised(2).await;
    rig.cancel(&voided).await.unwrap();
    let notices = all(&rig).await;
    let declined = in_full(&notices, "payment_intent.payment_failed").unwrap();
    assert_eq!((declined.state, declined.may_be_paid), (P::Declined, true));
    // Whether anything had been reserved stands in the charge alone.
    assert_eq!(in_full(&notices, "payment_intent.canceled"), None);
    assert_eq!(rig.shown(&voided).await.state, P::Voided);
}

#[tokio::test]
async fn tricks_are_refused_or_shown_for_what_they_are() {
    let rig = Rig::new();
    let ways = Delivery::HOSTILE
        .into_iter()
        .filter(|way| !matches!(way, Delivery::HeldBack | Delivery::Dropped));
    for (booking, way) in (0..).zip(ways) {
        let before = rig.inbox.received().len();
        rig.fake.next_notice(SUCCEEDED, way);
        let intent = rig.captured(booking).await;
        rig.fake.quiet().await;
        let received = rig.inbox.received().split_off(before);
        let is_own = |one: &&Received| String::from_utf8_lossy(&one.body).contains(SUCCEEDED);
        let own: Vec<_> = received
            .iter()
            .filter(is_own)
            .map(|one| read(&rig, one))
            .collect();
        let is_true = |notice: &&Notice| {
            let told = match notice.subject.as_ref() {
                Some(Subject::Intent(told)) => told,
                Some(Subject::Named(_)) | None => return false,
            };
            told.id == intent
                && told.amount.minor() == PRICE
                && told.currency.as_str() == "EUR"
                && notice.account.is_none()
        };
        let taken: Vec<&Notice> = own.iter().flatten().collect();
        let truths = taken.iter().copied().filter(is_true).count();
        let refused = own.len() - taken.len();
        let expected = match way {
            Delivery::Copies(copies) => (usize::from(copies), 0, 0),
            Delivery::ReplayedOld | Delivery::Forged => (1, 0, 1),
            Delivery::ReplayedResigned => (2, 0, 0),
            Delivery::WrongAmount | Delivery::WrongAccount | Delivery::WrongCurrency => (1, 1, 0),
            _ => (1, 0, 0),
        };
        let lies = taken.len() - truths;
        assert_eq!((truths, lies, refused), expected, "{way:?}");
    }
}

fn read_signed(body: &str) -> Result<Notice, WebhookError> {
    let (secret, body) = ("whsec_0123456789", body.as_bytes());
    let signature = signature::header(&[secret], BEGIN_MS / 1_000, body);
    let secrets = WebhookSecrets::new(secret, None).unwrap();
    verify(body, &signature, &secrets, Timestamp::from_ms(BEGIN_MS))
}

fn event(of: &serde_json::Value) -> String {
    json!({ "id": "evt_1", "type": "t", "created": 1, "data": { "object": of } }).to_string()
}

#[test]
fn what_is_no_payment_is_taken_and_has_no_subject() {
    for of in [
        json!({ "object": "customer", "id": "cus_1" }),
        json!({ "object": "charge", "id": "ch_1", "payment_intent": null }),
        json!({}),
        json!("text"),
    ] {
        assert_eq!(read_signed(&event(&of)).unwrap().subject, None, "{of}");
    }
}

#[test]
fn an_intent_in_words_we_do_not_know_is_to_be_retrieved() {
    for status in ["requires_blessing", ""] {
        let of = json!({ "object": "payment_intent", "id": "pi_1", "status": status });
        let subject = read_signed(&event(&of)).unwrap().subject.unwrap();
        assert!(matches!(&subject, Subject::Named(id) if id.as_str() == "pi_1"));
    }
}

#[test]
fn a_genuine_notice_that_cannot_be_read_is_no_notice() {
    let odd_id = event(&json!({})).replace("evt_1", "evt 1");
    let odd_intent = event(&json!({ "object": "payment_intent", "id": "pi_1/capture" }));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in ["", "{}", "[]", "null", &odd_id, &odd_intent, &deep] {
        let error = read_signed(body).unwrap_err();
        assert!(matches!(error, WebhookError::Unreadable(_)), "{error}");
    }
}

#[test]
fn what_is_too_long_is_not_hashed() {
    let body = " ".repeat(256 * 1024 + 1);
    let error = read_signed(&body).unwrap_err();
    assert!(
        matches!(error, WebhookError::TooLong { what: "body", .. }),
        "{error}"
    );
    let secrets = WebhookSecrets::new("whsec_0123456789", None).unwrap();
    let header = "v1=".repeat(2_000);
    let error = verify(b"{}", &header, &secrets, Timestamp::from_ms(BEGIN_MS)).unwrap_err();
    assert!(matches!(error, WebhookError::TooLong { .. }), "{error}");
}

#[test]
fn a_header_that_is_none_is_refused() {
    let secrets = WebhookSecrets::new("whsec_0123456789", None).unwrap();
    let many = format!("t=1{}", ",v1=00".repeat(17));
    for header in [
        "",
        "t",
        "v1=00",
        "t=,v1=00",
        "t=-5,v1=00",
        "t=+5,v1=00",
        "t=5 5,v1=00",
        "t=9999999999999,v1=00",
        "t=1,t=2,v1=00",
        "t=\u{0661},v1=00",
    ] {
        let error = verify(b"{}", header, &secrets, Timestamp::from_ms(5)).unwrap_err();
        assert!(
            matches!(error, WebhookError::Header(_)),
            "{header:?}: {error}"
        );
    }
    // Signatures that are none do not match; that is all.
    for header in ["t=1", "t=1,v1=", "t=1,v1=zz", "t=1,v1=\u{e9}", &many] {
        let error = verify(b"{}", header, &secrets, Timestamp::from_ms(5)).unwrap_err();
        assert_eq!(error, WebhookError::Forged, "{header:?}");
    }
}

#[test]
fn a_short_signing_secret_is_refused() {
    assert!(WebhookSecrets::new("", None).is_err());
    assert!(WebhookSecrets::new("whsec_0123456789", Some("")).is_err());
    let secrets = WebhookSecrets::new("whsec_0123456789", None).unwrap();
    assert!(!format!("{secrets:?}").contains("0123"));
}

/// A notice of Stripe's second kind names what it is about, and tells nothing of it.
#[test]
fn a_thin_notice_is_read() {
    let secrets = WebhookSecrets::new("whsec_0123456789abcdef", None).unwrap();
    let now = Timestamp::from_ms(BEGIN_MS);
    let told = |related: &str| {
        let body = format!(
            r#"{{"id":"evt_1","object":"v2.core.event","type":"v1.thing.changed","livemode":false,
                "created":"2026-01-01T00:00:00.000Z","context":"acct_1","related_object":{related}}}"#
        );
        let second = BEGIN_MS / 1_000;
        let v1 = signature::v1("whsec_0123456789abcdef", second, body.as_bytes());
        let header = format!("t={second},v1={v1}");
        verify(body.as_bytes(), &header, &secrets, now).unwrap()
    };
    let notice = told(r#"{"id":"pi_1","type":"payment_intent","url":"/v1/payment_intents/pi_1"}"#);
    let intent = IntentId::parse("pi_1").unwrap();
    assert_eq!(notice.subject, Some(Subject::Named(intent)));
    assert_eq!(notice.account.unwrap().as_str(), "acct_1");
    for other in [r#"{"id":"mtr_1","type":"billing.meter","url":"/"}"#, "null"] {
        assert_eq!(told(other).subject, None);
    }
}
