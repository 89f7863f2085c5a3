//! Money over HTTP: checkout, the provider's notices, what a shopper may confirm, exchange.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use fake_stripe::{FakeStripe, signature};
use serde_json::{Value, json};
use soldonce_clock::{ManualClock, SystemClock};
use soldonce_core::Span;
use soldonce_engine::payment::stripe::{Stripe, StripeKey, StripeSettings, WebhookSecrets};
use soldonce_engine::payment::{AccountId, IntentId, ProviderKey};
use soldonce_server::limits::{LOG_PERIOD_MS, NOTICE_BYTES_MAX};
use soldonce_server::{HeldLimits, RateLimits, StripeNotices};
use soldonce_testkit::log;
use soldonce_testkit::webhooks::Receiver;

use crate::harness::{Held, NOON, TestApp, hall, units};

/// A server that is paid through fake-stripe; the test carries the notices.
pub(crate) struct Shop {
    pub(crate) app: TestApp,
    pub(crate) fake: FakeStripe,
    inbox: Receiver,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        Self::that_believes(|_, _| {}).await
    }

    /// A server that is told otherwise whose notices are meant.
    async fn that_believes(change: impl Fn(&FakeStripe, &mut StripeNotices)) -> Self {
        Self::start(RateLimits::default(), change).await
    }

    async fn start(rates: RateLimits, change: impl Fn(&FakeStripe, &mut StripeNotices)) -> Self {
        let fake = FakeStripe::start_at(Arc::new(ManualClock::at(NOON))).unwrap();
        let inbox = Receiver::start().unwrap();
        fake.deliver_to(&inbox.url()).unwrap();
        let mut notices = StripeNotices {
            secrets: WebhookSecrets::new(fake.webhook_secret(), None).unwrap(),
            account: None,
            live: Some(false),
        };
        change(&fake, &mut notices);
        let app = TestApp::open_with(|settings| {
            settings.stripe = Some(notices);
            settings.rates = rates;
        })
        .await;
        let settings = StripeSettings {
            base_url: fake.url(),
            retry_wait: Span::from_ms(1),
            ..StripeSettings::new(StripeKey::parse(fake.secret_key()).unwrap())
        };
        let stripe = Stripe::new(settings, Arc::new(SystemClock)).unwrap();
        app.keep_secret(fake.secret_key());
        app.keep_secret(fake.webhook_secret());
        drop(app.engine.clone().paid_by(Arc::new(stripe)));
        Self {
            app: app.with_hall(3).await,
            fake,
            inbox,
        }
    }

    pub(crate) async fn checkout(&self, held: &Held) -> Value {
        let path = format!("{}/checkout", held.path());
        let (by, key) = (&self.app.sell, held.id.as_str());
        let begun = self.app.post(&path).by(by).key(key).send().await;
        let begun = begun.expect(StatusCode::CREATED);
        let again = self.app.post(&path).by(by).key(key).send().await;
        assert_eq!(again.status, StatusCode::CREATED);
        assert_eq!(again.headers["idempotency-replayed"], "true");
        assert_eq!(again.body, begun.body, "byte for byte");
        let body = begun.json();
        let secret = body["payment"]["client_secret"].as_str().unwrap();
        self.app.keep_secret(secret);
        body
    }

    /// Gives every notice to the server, and expects each to be answered so.
    async fn tell_all(&self, expected: StatusCode, change: impl Fn(&mut Vec<u8>)) {
        self.fake.quiet().await;
        let received = self.inbox.received();
        assert!(!received.is_empty());
        for mut one in received {
            change(&mut one.body);
            let told = self
                .app
                .post("/v1/webhooks/stripe")
                .header("stripe-signature", &one.signature)
                .body("application/json", one.body)
                .send()
                .await;
            assert_eq!(told.status, expected, "{}", told.text());
        }
    }

    /// As the outbox does.
    pub(crate) async fn capture(&self, begun: &Value) {
        let intent = begun["payment"]["intent"].as_str().unwrap();
        let intent = IntentId::parse(intent).unwrap();
        let id = begun["id"].as_str().unwrap().parse().unwrap();
        let key = ProviderKey::of(id, "capture").unwrap();
        let provider = self.app.engine.provider().unwrap();
        provider.capture(&intent, key).await.unwrap();
        self.tell_all(StatusCode::OK, |_| {}).await;
    }

    async fn booking(&self, begun: &Value) -> Value {
        let path = format!("/v1/bookings/{}", begun["id"].as_str().unwrap());
        let found = self.app.get(&path).by(&self.app.sell).send().await;
        found.expect(StatusCode::OK).json()
    }

    pub(crate) async fn paid(&self, held: &Held) -> Value {
        let begun = self.checkout(held).await;
        let intent = begun["payment"]["intent"].as_str().unwrap();
        self.fake.pay(intent, "pm_card_visa").await.unwrap();
        self.tell_all(StatusCode::OK, |_| {}).await;
        begun
    }
}

/// Two hours ahead, after the wall clock was so and was set right.
async fn notices_go_by_the_wall_clock_where_the_ledger_is_ahead() {
    let shop = Shop::open().await;
    shop.app.clock.step_wall(NOON + 2 * 3_600_000);
    let held = shop.app.held("ann", &["A-1"]).await;
    shop.app.clock.step_wall(NOON);
    assert!(shop.app.engine.clock_ahead_ms() > 3_600_000);
    let begun = shop.paid(&held).await;
    assert_eq!(shop.booking(&begun).await["state"], "confirmed");
}

async fn a_hold_is_paid_by_checkout() {
    let shop = Shop::open().await;
    let held = shop.app.held("ann", &["A-1"]).await;
    let begun = shop.paid(&held).await;
    assert_eq!(begun["state"], "pending_payment");
    assert_eq!(begun["payment"]["provider"], "stripe");
    let sold = shop.booking(&begun).await;
    assert_eq!(sold["state"], "confirmed");
    let payment = &sold["payment"];
    assert_eq!(
        (&payment["state"], &payment["amount"], &payment["captured"]),
        (&json!("authorised"), &json!(4_500), &json!(0))
    );
    assert_eq!(payment.get("client_secret"), None, "for the buyer once");
    // Every notice again: nothing happens.
    shop.tell_all(StatusCode::OK, |_| {}).await;
    assert_eq!(shop.booking(&begun).await["lines"], sold["lines"]);
}

async fn a_notice_that_was_touched_has_no_effect() {
    let shop = Shop::open().await;
    let held = shop.app.held("ann", &["A-1"]).await;
    let begun = shop.checkout(&held).await;
    let intent = begun["payment"]["intent"].as_str().unwrap();
    shop.fake.pay(intent, "pm_card_visa").await.unwrap();
    shop.tell_all(StatusCode::BAD_REQUEST, |body| body.push(b' '))
        .await;
    assert_eq!(shop.booking(&begun).await["state"], "pending_payment");
    let bare = shop.app.post("/v1/webhooks/stripe").send().await;
    bare.refused(400, "invalid_request");
}

async fn false_notices_do_not_fill_the_log() {
    let shop = Shop::open().await;
    let told = || {
        let lines = log::lines().into_iter();
        lines
            .filter(|line| line.contains("a notice was not believed"))
            .collect::<Vec<_>>()
    };
    let forge = async |body: Vec<u8>| {
        let ask = shop.app.post("/v1/webhooks/stripe");
        ask.body("application/json", body).send().await
    };
    for _ in 0..20 {
        forge(b"{}".to_vec()).await.refused(400, "invalid_request");
    }
    shop.app.clock.advance(Duration::from_millis(LOG_PERIOD_MS));
    forge(b"{}".to_vec()).await.refused(400, "invalid_request");
    // Nineteen of twenty were left out.
    assert!(
        told().iter().any(|line| line.contains("left_out=19")),
        "{:?}",
        told()
    );
    // A large notice is judged by its signature, a larger one is not read.
    let largest = forge(vec![b' '; NOTICE_BYTES_MAX]).await;
    largest.refused(400, "invalid_request");
    let larger = forge(vec![b' '; NOTICE_BYTES_MAX + 1]).await;
    larger.refused(413, "body_too_large");
}

async fn without_a_provider_there_is_no_checkout_and_no_notice() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("ann", &["A-1"]).await;
    let path = format!("{}/checkout", held.path());
    let asked = app.post(&path).by(&app.sell).key("k").send().await;
    asked.refused(400, "invalid_request");
    let told = app.post("/v1/webhooks/stripe").send().await;
    told.refused(404, "not_found");
    let body = json!({"holder": "bob", "units": units(&["A-2"])});
    let sale = app.post("/v1/events/hall/sales").by(&app.sell).key("s");
    let sold = sale.json(&body).send().await.expect(StatusCode::CREATED);
    let id = sold.json()["id"].as_str().unwrap().to_owned();
    let refund = app.post(&format!("/v1/bookings/{id}/refunds"));
    let refund = refund.by(&app.admin).key("r").json(&json!({"amount": 1}));
    refund.send().await.refused(409, "nothing_paid");
}

async fn what_a_checkout_or_an_exchange_cannot_mean_is_named() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("ann", &["A-1"]).await;
    let path = format!("{}/checkout", held.path());
    for address in ["nonsense", "/paid", "javascript:alert(1)", ""] {
        let ask = app.post(&path).by(&app.sell).key("k");
        let refused = ask.json(&json!({"return_url": address})).send().await;
        let refused = refused.refused(400, "invalid_request");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.starts_with("return_url: "), "{address}: {detail}");
    }
    let body = json!({"booking": "bkg_00000000000000000000000000", "release": [], "hold": held.id});
    let exchange = app.post("/v1/exchanges").by(&app.sell).key("x");
    let refused = exchange.json(&body).send().await;
    let refused = refused.refused(400, "invalid_request");
    assert_eq!(refused["detail"], "release: name at least one");
}

async fn a_shopper_confirms_nothing_that_costs() {
    let shop = Shop::open().await;
    let shopper = shop.app.shopper().await;
    let wish = json!({"units": units(&["A-1"])});
    let held = shop.app.hold(&shopper, &wish).await;
    let held = Held::of(&held.expect(StatusCode::CREATED));
    let path = format!("{}/confirm", held.path());
    let confirmed = shop.app.post(&path).by(&shopper).key("k").send().await;
    confirmed.refused(403, "forbidden");
}

async fn a_payment_is_given_up_and_begun_again() {
    let shop = Shop::open().await;
    let held = shop.app.held("ann", &["A-1"]).await;
    let begun = shop.checkout(&held).await;
    let path = format!("{}/abandon", held.path());
    let given_up = shop.app.post(&path).by(&shop.app.sell).send().await;
    assert_eq!(given_up.expect(StatusCode::OK).json()["state"], "active");
    assert_eq!(shop.booking(&begun).await["state"], "failed");
    let path = format!("{}/checkout", held.path());
    let again = shop
        .app
        .post(&path)
        .by(&shop.app.sell)
        .key("other")
        .send()
        .await;
    again.expect(StatusCode::CREATED);
}

async fn a_dearer_exchange_is_a_checkout_of_the_difference() {
    let shop = Shop::open().await;
    let held = shop.app.held("ann", &["A-1"]).await;
    let first = shop.paid(&held).await;
    let dearer = shop.app.held("ann", &["A-2", "A-3"]).await;
    let swap = json!({"booking": first["id"], "release": [{"seat": "A-1"}], "hold": dearer.id});
    let ask = shop.app.post("/v1/exchanges").by(&shop.app.sell);
    let refused = ask.key("x").json(&swap).send().await;
    refused.refused(409, "payment_required");
    let body = json!({"exchange": {"booking": first["id"], "release": [{"seat": "A-1"}]}});
    let path = format!("{}/checkout", dearer.path());
    let ask = async |key: &str| {
        let ask = shop.app.post(&path).by(&shop.app.sell);
        ask.key(key).json(&body).send().await
    };
    ask("early").await.refused(409, "payment_in_progress");
    shop.capture(&first).await;
    let begun = ask("d").await.expect(StatusCode::CREATED).json();
    shop.app
        .keep_secret(begun["payment"]["client_secret"].as_str().unwrap());
    let expected = json!({"booking": first["id"], "release": [{"seat": "A-1"}],
        "difference": 4_500, "credit": 0});
    assert_eq!(begun["exchange"], expected);
    let intent = begun["payment"]["intent"].as_str().unwrap();
    shop.fake.pay(intent, "pm_card_visa").await.unwrap();
    shop.tell_all(StatusCode::OK, |_| {}).await;
    let sold = shop.booking(&begun).await;
    assert_eq!(
        (&sold["state"], &sold["exchange"]["credit"]),
        (&json!("confirmed"), &json!(4_500))
    );
    let given = shop.booking(&first).await;
    assert_eq!(
        (&given["state"], &given["payment"]["carried"]),
        (&json!("cancelled"), &json!(4_500))
    );
    assert_eq!(
        (&sold["total"], &given["payment"]["paid"]),
        (&json!(9_000), &json!(0))
    );
    ask("again").await.refused(409, "already_cancelled");
}

async fn lines_are_exchanged_and_money_is_sent_back() {
    let shop = Shop::open().await;
    let held = shop.app.held("ann", &["A-1"]).await;
    let begun = shop.paid(&held).await;
    let other = shop.app.held("ann", &["A-2"]).await;
    let body = json!({"booking": begun["id"], "release": [{"seat": "A-1"}], "hold": other.id});
    let swapped = shop
        .app
        .post("/v1/exchanges")
        .by(&shop.app.sell)
        .key("x")
        .json(&body)
        .send()
        .await;
    let swapped = swapped.expect(StatusCode::OK).json();
    assert_eq!(swapped["lines"][0]["seat"], "A-2");
    let path = format!("/v1/bookings/{}/refunds", begun["id"].as_str().unwrap());
    for (amount, status) in [(500, 200), (4_001, 400), (0, 400), (-1, 400)] {
        let asked = shop
            .app
            .post(&path)
            .by(&shop.app.admin)
            .key(&format!("r{amount}"))
            .json(&json!({"amount": amount}))
            .send()
            .await;
        assert_eq!(asked.status.as_u16(), status, "{amount}: {}", asked.text());
    }
}

async fn a_refund_is_settled_elsewhere() {
    let shop = Shop::open().await;
    let held = shop.app.held("ann", &["A-1"]).await;
    let begun = shop.paid(&held).await;
    shop.capture(&begun).await;
    let path = format!("/v1/bookings/{}/refunds", begun["id"].as_str().unwrap());
    let ask = async |key: &str, body: Value| {
        let ask = shop.app.post(&path).by(&shop.app.admin).key(key);
        ask.json(&body).send().await
    };
    let settle = json!({"amount": 500, "elsewhere": true});
    let refused = ask("early", settle.clone()).await;
    let refused = refused.refused(400, "invalid_request");
    assert_eq!(refused["detail"], "amount: what is still to go back is 0");
    let ordered = ask("r", json!({"amount": 500, "elsewhere": false})).await;
    ordered.expect(StatusCode::OK);
    for _ in ["the first time", "with the same key"] {
        let settled = ask("s", settle.clone()).await.expect(StatusCode::OK);
        let payment = &settled.json()["payment"];
        assert_eq!(
            (
                &payment["elsewhere"],
                &payment["refunded"],
                &payment["paid"]
            ),
            (&json!(500), &json!(0), &json!(4_000))
        );
    }
}

/// Notices of the platform when a connected account is meant, of test money when the key is of real
/// money: they are answered, so that they are not sent for days, and move nothing.
async fn a_notice_of_another_account_or_of_other_money_moves_nothing() {
    let account = |fake: &FakeStripe, notices: &mut StripeNotices| {
        notices.account = Some(AccountId::parse(fake.account()).unwrap());
    };
    let of_another = Shop::that_believes(account).await;
    let of_tests = Shop::that_believes(|_, notices| notices.live = Some(true)).await;
    for (shop, why) in [(of_another, "another account"), (of_tests, "real money")] {
        let held = shop.app.held("ann", &["A-1"]).await;
        let begun = shop.paid(&held).await;
        assert_eq!(shop.booking(&begun).await["state"], "pending_payment");
        let told = log::lines();
        let line = told.iter().find(|line| line.contains(why));
        assert!(
            line.is_some_and(|line| line.contains("refused")),
            "{told:?}"
        );
    }
}

/// An intent that the provider does not show us is none of our bookings'.
async fn a_notice_about_what_the_provider_does_not_know_is_answered() {
    let shop = Shop::open().await;
    let body = r#"{"id":"evt_1","object":"event","type":"charge.updated","created":1796126400,
        "livemode":false,"data":{"object":{"object":"charge","payment_intent":"pi_unknown"}}}"#;
    let second = NOON / 1_000;
    let v1 = signature::v1(shop.fake.webhook_secret(), second, body.as_bytes());
    let told = shop.app.post("/v1/webhooks/stripe");
    let told = told.header("stripe-signature", &format!("t={second},v1={v1}"));
    let told = told.body("application/json", body).send().await;
    told.expect(StatusCode::OK);
}

/// Without a provider a shopper gets nothing that costs something, unless the operator says so.
async fn what_costs_something_is_not_given_away_by_oversight() {
    let app = TestApp::open_with(|_| {}).await;
    let chart = json!({"format": "seats", "seats": [
        {"seat": "A-1", "category": "Free"}, {"seat": "A-2", "category": "Free"},
        {"seat": "B-1", "category": "Dear"}, {"seat": "B-2", "category": "Dear"}]});
    let event = json!({"id": "hall", "name": "Hall", "currency": "EUR", "chart": chart,
        "prices": {"Free": 0, "Dear": 4_500}});
    app.create(&event).await.expect(StatusCode::CREATED);
    let shopper = app.shopper().await;
    let hold = async |seat: &str| {
        let body = json!({"units": units(&[seat])});
        Held::of(&app.hold(&shopper, &body).await.expect(StatusCode::CREATED))
    };
    let confirm = async |held: &Held, by: &str| {
        let path = format!("{}/confirm", held.path());
        let ask = app.post(&path).by(by).secret(&held.secret);
        ask.key(&held.id).send().await
    };
    let dear = hold("B-1").await;
    let refused = confirm(&dear, &shopper).await.refused(403, "forbidden");
    assert!(refused["detail"].as_str().unwrap().contains("--free-sales"));
    let free = confirm(&hold("A-1").await, &shopper).await;
    let booking = free.expect(StatusCode::CREATED).json()["id"].clone();
    // Nor by way of an exchange.
    let swap = json!({"booking": booking, "release": [{"seat": "A-1"}], "hold": dear.id});
    let swapped = app.post("/v1/exchanges").by(&shopper).key("x").json(&swap);
    swapped.send().await.refused(409, "payment_required");
    // A shop's own key answers for the money.
    let vouched = confirm(&dear, &app.sell).await;
    vouched.expect(StatusCode::CREATED);
    drop(app.engine.clone().with_free_sales());
    let given = confirm(&hold("B-2").await, &shopper).await;
    given.expect(StatusCode::CREATED);
}

/// Where no provider takes money, the shop that exchanges with its key has seen to the difference.
async fn a_dearer_exchange_by_a_key_needs_no_provider() {
    let app = TestApp::open().await;
    let mut event = hall("hall", 1);
    event["chart"] = json!({"format": "seats", "seats": [
        {"seat": "A-1", "category": "Standard"}, {"seat": "B-1", "category": "Dear"}]});
    event["prices"] = json!({"Standard": 4_500, "Dear": 9_000});
    app.create(&event).await.expect(StatusCode::CREATED);
    let held = app.held("ann", &["A-1"]).await;
    let booked = app.booked(&held).await;
    let dear = app.held("ann", &["B-1"]).await;
    let swap = json!({"booking": booked["id"], "release": [{"seat": "A-1"}], "hold": dear.id});
    let ask = app.post("/v1/exchanges").by(&app.sell).key("x").json(&swap);
    let swapped = ask.send().await.expect(StatusCode::OK).json();
    assert_eq!(
        (&swapped["lines"][0]["seat"], &swapped["total"]),
        (&json!("B-1"), &json!(9_000))
    );
}

/// What the provider would refuse at every checkout is refused when the event is made.
async fn a_price_that_no_buyer_could_pay_makes_no_event() {
    let shop = Shop::open().await;
    let create = async |currency: &str, price: i64| {
        let mut event = hall("priced", 1);
        event["currency"] = json!(currency);
        event["prices"]["Standard"] = json!(price);
        shop.app.create(&event).await
    };
    for (currency, price) in [
        ("EUR", 10),
        ("KWD", 1_005),
        ("USD", 100_000_000),
        ("ISK", 550),
        ("XQZ", 4_500),
    ] {
        let refused = create(currency, price)
            .await
            .refused(400, "invalid_request");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.starts_with("prices: `Standard`: Stripe"), "{detail}");
    }
    create("EUR", 0).await.expect(StatusCode::CREATED);
}

/// A refund that the provider refuses for good would keep all later ones waiting.
async fn an_amount_that_cannot_go_back_is_refused_at_once() {
    let shop = Shop::open().await;
    let mut event = hall("reykjavik", 1);
    (event["currency"], event["prices"]["Standard"]) = (json!("ISK"), json!(500_000));
    shop.app.create(&event).await.expect(StatusCode::CREATED);
    let hold = shop
        .app
        .post("/v1/events/reykjavik/holds")
        .by(&shop.app.sell);
    let hold = hold.json(&json!({"holder": "ann", "units": units(&["A-1"])}));
    let held = Held::of(&hold.send().await.expect(StatusCode::CREATED));
    let begun = shop.paid(&held).await;
    let path = format!("/v1/bookings/{}/refunds", begun["id"].as_str().unwrap());
    let refund = async |amount: u32| {
        let ask = shop.app.post(&path).by(&shop.app.admin);
        let ask = ask
            .key(&format!("r{amount}"))
            .json(&json!({"amount": amount}));
        ask.send().await
    };
    let refused = refund(50).await.refused(400, "invalid_request");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.starts_with("amount: Stripe"), "{detail}");
    refund(1_000).await.expect(StatusCode::OK);
}

async fn payments_that_an_address_has_under_way_are_bounded() {
    let rates = RateLimits {
        held: HeldLimits {
            checkouts: Some(2),
            ..HeldLimits::default()
        },
        ..RateLimits::off()
    };
    let shop = Shop::start(rates, |_, _| {}).await;
    let app = &shop.app;
    let mut begun = Vec::new();
    for seat in 1..=3 {
        let by = app.shopper().await;
        let body = json!({"units": units(&[&format!("A-{seat}")])});
        let held = app.hold(&by, &body).await.expect(StatusCode::CREATED);
        begun.push((by, Held::of(&held)));
    }
    let ask = async |(by, held): &(String, Held), verb: &str| {
        let path = format!("{}/{verb}", held.path());
        let answer = app.post(&path).by(by).key(&held.id).send().await;
        if let Some(secret) = answer.json()["payment"]["client_secret"].as_str() {
            app.keep_secret(secret);
        }
        answer
    };
    for left in [1, 0] {
        let answer = ask(&begun[1 - left], "checkout").await;
        let answer = answer.expect(StatusCode::CREATED);
        let told = format!("\"checkouts\";r={left};");
        assert!(answer.header("ratelimit").starts_with(&told), "{told}");
    }
    let refused = ask(&begun[2], "checkout").await;
    assert_eq!(refused.header("ratelimit-policy"), "\"checkouts\";q=2");
    refused.refused(429, "rate_limited");
    // Asking again is no further payment.
    ask(&begun[0], "checkout").await.expect(StatusCode::CREATED);
    ask(&begun[0], "abandon").await.expect(StatusCode::OK);
    ask(&begun[2], "checkout").await.expect(StatusCode::CREATED);
}

crate::variant::run_over! {
    [over_http, over_grpc, on_postgres, over_grpc_on_postgres], workers: 0, {
        notices_go_by_the_wall_clock_where_the_ledger_is_ahead,
        a_hold_is_paid_by_checkout,
        a_notice_that_was_touched_has_no_effect,
        false_notices_do_not_fill_the_log,
        without_a_provider_there_is_no_checkout_and_no_notice,
        what_a_checkout_or_an_exchange_cannot_mean_is_named,
        a_shopper_confirms_nothing_that_costs,
        a_payment_is_given_up_and_begun_again,
        a_dearer_exchange_is_a_checkout_of_the_difference,
        lines_are_exchanged_and_money_is_sent_back,
        a_refund_is_settled_elsewhere,
        a_notice_of_another_account_or_of_other_money_moves_nothing,
        a_notice_about_what_the_provider_does_not_know_is_answered,
        what_costs_something_is_not_given_away_by_oversight,
        an_amount_that_cannot_go_back_is_refused_at_once,
        a_dearer_exchange_by_a_key_needs_no_provider,
        a_price_that_no_buyer_could_pay_makes_no_event,
        payments_that_an_address_has_under_way_are_bounded,
    }
}
