//! Rate limits by real requests: who is counted for what, what answers say of it, that no caller is
//! counted as another one, and what several servers count together.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::json;
use soldonce_engine::rate::{Fut, HeldSums, OwnHeld, Quota, RateKey, SharedRates, Taken, Unshared};
use soldonce_server::{Peer, RateLimits, StreamLimits};

use crate::harness::{Answer, Ask, TestApp, units};

const EVENT: &str = "/v1/events/hall";
const HOLDS: &str = "/v1/events/hall/holds";

fn per_minute(requests: u32) -> Option<Quota> {
    Quota::new(requests, 60).ok()
}

/// A server with these limits, open to shoppers, with a hall.
async fn limited(rates: RateLimits) -> TestApp {
    let app = TestApp::open_with(|settings| settings.rates = rates).await;
    app.with_hall(10).await
}

fn from<'a>(ask: Ask<'a>, address: &str) -> Ask<'a> {
    let peer: SocketAddr = format!("{address}:4000").parse().unwrap();
    ask.with(Peer(peer))
}

async fn read(app: &TestApp, address: &str) -> Answer {
    from(app.get(EVENT), address).send().await
}

fn limit_of(answer: &Answer) -> (&str, &str) {
    (
        answer.header("ratelimit"),
        answer.header("ratelimit-policy"),
    )
}

async fn an_answer_says_what_is_left_and_a_refusal_when_there_is_more() {
    let reads = per_minute(3);
    let app = limited(RateLimits {
        reads,
        ..RateLimits::off()
    })
    .await;
    for (left, whole_in) in [(2, 20), (1, 40), (0, 60)] {
        let answer = read(&app, "192.0.2.1").await.expect(StatusCode::OK);
        let limit = format!("\"reads\";r={left};t={whole_in}");
        assert_eq!(limit_of(&answer), (&*limit, "\"reads\";q=3;w=60"));
    }
    app.clock.advance(Duration::from_millis(500));
    let answer = read(&app, "192.0.2.1").await;
    assert_eq!(answer.header("retry-after"), "20", "19.5 s, rounded up");
    assert_eq!(
        limit_of(&answer),
        ("\"reads\";r=0;t=20", "\"reads\";q=3;w=60")
    );
    let problem = answer.refused(429, "rate_limited");
    assert_eq!(problem["retry_after_ms"], 19_500);
    assert_eq!(problem["advice"], "retry_after");
    app.clock.advance(Duration::from_millis(19_499));
    read(&app, "192.0.2.1").await.refused(429, "rate_limited");
    app.clock.advance(Duration::from_millis(1));
    read(&app, "192.0.2.1").await.expect(StatusCode::OK);
    read(&app, "192.0.2.1").await.refused(429, "rate_limited");
}

async fn refusals_of_other_kinds_say_it_too() {
    let app = limited(RateLimits::default()).await;
    let answer = app.get("/v1/events/none").send().await;
    assert_eq!(answer.header("ratelimit"), "\"reads\";r=5999;t=1");
    answer.refused(404, "event_not_found");
}

async fn each_address_has_its_own_and_an_ipv6_network_is_one() {
    let reads = per_minute(1);
    let app = limited(RateLimits {
        reads,
        ..RateLimits::off()
    })
    .await;
    for address in [
        "192.0.2.1",
        "192.0.2.2",
        "[2001:db8::1]",
        "[2001:db8:0:1::1]",
    ] {
        read(&app, address).await.expect(StatusCode::OK);
    }
    for address in ["192.0.2.1", "[::ffff:192.0.2.2]", "[2001:db8::ffff]"] {
        read(&app, address).await.refused(429, "rate_limited");
    }
}

async fn a_session_pays_for_its_commands_and_its_address_for_the_session() {
    let (sessions, commands) = (per_minute(2), per_minute(3));
    let limits = RateLimits {
        sessions,
        commands,
        ..RateLimits::off()
    };
    let app = limited(limits).await;
    let open = || from(app.post("/v1/sessions"), "192.0.2.1");
    let shoppers = [
        app.shopper_at("192.0.2.1").await,
        app.shopper_at("192.0.2.1").await,
    ];
    let refused = open().send().await;
    assert_eq!(
        limit_of(&refused),
        ("\"sessions\";r=0;t=30", "\"sessions\";q=2;w=60")
    );
    refused.refused(429, "rate_limited");
    from(app.post("/v1/sessions"), "192.0.2.2")
        .send()
        .await
        .expect(StatusCode::CREATED);
    for (shopper, row) in shoppers.iter().zip(["A", "B"]) {
        for seat in 1..=3 {
            let body = json!({"units": units(&[&format!("{row}-{seat}")])});
            let ask = from(app.post(HOLDS), "192.0.2.1").by(shopper).json(&body);
            ask.send().await.expect(StatusCode::CREATED);
        }
        let again = || from(app.post(HOLDS), "192.0.2.1").by(shopper);
        again().send().await.refused(429, "rate_limited");
        let moved = app.post(HOLDS).by(shopper);
        from(moved, "192.0.2.9")
            .send()
            .await
            .refused(429, "rate_limited");
        let list = from(app.get("/v1/holds"), "192.0.2.1").by(shopper);
        list.send().await.expect(StatusCode::OK);
    }
}

async fn a_session_brings_no_reads_of_its_own() {
    let limits = RateLimits {
        reads: per_minute(2),
        ..RateLimits::off()
    };
    let app = limited(limits).await;
    for left in [1, 0] {
        let shopper = app.shopper_at("192.0.2.1").await;
        let answer = from(app.get(EVENT), "192.0.2.1").by(&shopper).send().await;
        let answer = answer.expect(StatusCode::OK);
        assert!(
            answer
                .header("ratelimit")
                .starts_with(&format!("\"reads\";r={left};"))
        );
    }
    read(&app, "192.0.2.1").await.refused(429, "rate_limited");
}

async fn a_key_has_no_limit_unless_one_is_set() {
    let one = per_minute(1);
    let app = limited(RateLimits {
        sessions: one,
        commands: one,
        reads: one,
        ..RateLimits::off()
    })
    .await;
    for _ in 0..10 {
        let answer = app.get(EVENT).by(&app.read).send().await;
        assert_eq!(limit_of(&answer.expect(StatusCode::OK)), ("", ""));
        let sent = app.post(HOLDS).by(&app.sell).send().await;
        sent.refused(415, "unsupported_media_type");
    }
    let app = limited(RateLimits {
        keys: per_minute(3),
        ..RateLimits::off()
    })
    .await;
    let ask = |path: &str, address: &str| from(app.get(path), address).by(&app.sell);
    ask(EVENT, "192.0.2.1").send().await.expect(StatusCode::OK);
    ask("/v1/events", "192.0.2.2")
        .send()
        .await
        .expect(StatusCode::OK);
    let session = app.post("/v1/sessions").by(&app.sell).send().await;
    assert_eq!(session.header("ratelimit"), "\"keys\";r=0;t=60");
    ask(EVENT, "192.0.2.3")
        .send()
        .await
        .refused(429, "rate_limited");
    app.get(EVENT)
        .by(&app.read)
        .send()
        .await
        .expect(StatusCode::OK);
}

async fn wrong_credentials_count_as_reads_of_the_address() {
    let app = limited(RateLimits {
        reads: per_minute(3),
        ..RateLimits::off()
    })
    .await;
    let guess = |path: &str| from(app.post(path), "192.0.2.1").by("sk_wrong");
    guess(HOLDS).send().await.refused(401, "unauthenticated");
    guess("/v1/keys")
        .send()
        .await
        .refused(401, "unauthenticated");
    let missing = from(app.post("/v1/keys"), "192.0.2.1");
    missing.send().await.refused(401, "unauthenticated");
    guess("/v1/keys").send().await.refused(429, "rate_limited");
    read(&app, "192.0.2.1").await.refused(429, "rate_limited");
    read(&app, "192.0.2.2").await.expect(StatusCode::OK);
}

async fn only_the_largest_answers_for_anyone_are_counted() {
    let one = per_minute(1);
    let limits = RateLimits {
        sessions: one,
        commands: one,
        reads: one,
        keys: one,
        ..RateLimits::off()
    };
    let app = limited(limits).await;
    for (path, address) in [
        ("/docs", "192.0.2.1"),
        ("/docs/docs.js", "192.0.2.2"),
        ("/openapi.json", "192.0.2.3"),
        ("/metrics", "192.0.2.4"),
    ] {
        let answer = from(app.get(path), address).send().await;
        assert_ne!(answer.status, StatusCode::TOO_MANY_REQUESTS, "{path}");
        let again = from(app.get(path), address).send().await;
        again.refused(429, "rate_limited");
    }
    for path in ["/", "/healthz", "/readyz", "/nope"] {
        for _ in 0..3 {
            let answer = app.get(path).send().await;
            assert_ne!(answer.status, StatusCode::TOO_MANY_REQUESTS, "{path}");
            assert_eq!(limit_of(&answer), ("", ""));
        }
    }
}

async fn ten_thousand_forged_addresses_are_one_caller() {
    let app = limited(RateLimits {
        reads: per_minute(100),
        ..RateLimits::off()
    })
    .await;
    let mut passed = 0;
    for number in 0..10_000_u32 {
        let [_, b, c, d] = number.to_be_bytes();
        let forged = format!("10.{b}.{c}.{d}");
        let ask = from(app.get(EVENT), "192.0.2.1").header("x-forwarded-for", &forged);
        passed += u32::from(ask.send().await.status == StatusCode::OK);
    }
    assert_eq!(passed, 100);
}

async fn a_trusted_proxy_is_believed_and_what_its_clients_write_is_not() {
    let app = limited(RateLimits {
        reads: per_minute(1),
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        ..RateLimits::off()
    })
    .await;
    let ask = |lines: &[&str]| {
        let ask = from(app.get(EVENT), "10.0.0.1");
        lines
            .iter()
            .fold(ask, |ask, line| ask.header("x-forwarded-for", line))
    };
    ask(&["192.0.2.1"]).send().await.expect(StatusCode::OK);
    for lines in [
        &["192.0.2.1"][..],
        &["203.0.113.9, 192.0.2.1"],
        &["203.0.113.9", "192.0.2.1"],
        &["203.0.113.9", "192.0.2.1, 10.7.7.7"],
    ] {
        ask(lines).send().await.refused(429, "rate_limited");
    }
    ask(&["192.0.2.2"]).send().await.expect(StatusCode::OK);
    ask(&["nonsense"]).send().await.expect(StatusCode::OK);
    ask(&["other nonsense"])
        .send()
        .await
        .refused(429, "rate_limited");
}

async fn feed_streams_count_by_the_address_behind_the_proxy() {
    let rates = RateLimits {
        trusted_proxies: vec!["10.0.0.1".parse().unwrap()],
        ..RateLimits::off()
    };
    let streams = StreamLimits {
        total: 9,
        per_address: 1,
    };
    let app = TestApp::open_with(|settings| (settings.streams, settings.rates) = (streams, rates));
    let app = app.await.with_hall(1).await;
    let ask = |client: &str| {
        let ask = from(app.get("/v1/events/hall/feed"), "10.0.0.1");
        ask.header("x-forwarded-for", client)
    };
    let (one, other) = (
        ask("192.0.2.1").start().await,
        ask("192.0.2.2").start().await,
    );
    assert_eq!(
        (one.status(), other.status()),
        (StatusCode::OK, StatusCode::OK)
    );
    let refused = ask("192.0.2.1").send().await;
    assert_eq!(refused.header("ratelimit-policy"), "\"streams\";q=1");
    assert_eq!(refused.header("ratelimit"), "\"streams\";r=0;t=1");
    refused.refused(429, "rate_limited");
    assert_eq!(
        counted(&app, "rate_limited_total{limit=\"streams\"}").await,
        1
    );
}

/// The value of a counter, read from an address that has read nothing before.
async fn counted(app: &TestApp, name: &str) -> u64 {
    static READ: AtomicU32 = AtomicU32::new(1);
    let address = Ipv4Addr::from_bits(0xc633_6400 + READ.fetch_add(1, Ordering::Relaxed));
    let text = from(app.get("/metrics"), &address.to_string());
    let text = text.send().await.text();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("soldonce_{name} ")));
    line.unwrap_or_else(|| panic!("{name} is not in {text}"))
        .parse()
        .unwrap()
}

async fn refusals_are_counted_by_limit() {
    let app = limited(RateLimits {
        reads: per_minute(1),
        ..RateLimits::off()
    })
    .await;
    for _ in 0..3 {
        read(&app, "192.0.2.1").await;
    }
    assert_eq!(
        counted(&app, "rate_limited_total{limit=\"reads\"}").await,
        2
    );
    for limit in ["sessions", "commands", "address", "held", "keys", "streams"] {
        let name = format!("rate_limited_total{{limit=\"{limit}\"}}");
        assert_eq!(counted(&app, &name).await, 0);
    }
}

/// Other servers, as far as one server knows of them.
#[derive(Debug, Default)]
struct Others {
    answer: Mutex<Option<Result<Taken, Unshared>>>,
    asked: AtomicU32,
}

impl SharedRates for Others {
    fn take(&self, key: RateKey, quota: Quota) -> Fut<'_, Result<Taken, Unshared>> {
        assert_eq!((key.kind, quota.requests()), ("reads", 10));
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = self.answer.lock().unwrap().unwrap();
        Box::pin(std::future::ready(answer))
    }

    fn tell_held(&self, _: OwnHeld) -> Fut<'_, Result<HeldSums, Unshared>> {
        Box::pin(std::future::ready(Err(Unshared::NotAsked)))
    }
}

impl Others {
    fn answer(&self, answer: Result<Taken, Unshared>) {
        *self.answer.lock().unwrap() = Some(answer);
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Ten reads a minute, counted together with others.
async fn shared() -> (TestApp, Arc<Others>) {
    let others = Arc::new(Others::default());
    let limits = RateLimits {
        reads: per_minute(10),
        shared: Some(others.clone()),
        ..RateLimits::off()
    };
    (limited(limits).await, others)
}

async fn what_others_counted_counts_and_is_not_asked_for_again_before_its_time() {
    let (app, others) = shared().await;
    let whole_in = Duration::from_secs(42);
    others.answer(Ok(Taken::Passed { left: 3, whole_in }));
    let answer = read(&app, "192.0.2.1").await.expect(StatusCode::OK);
    assert_eq!(answer.header("ratelimit"), "\"reads\";r=3;t=42");
    let retry_in = Duration::from_millis(1_500);
    others.answer(Ok(Taken::Refused { retry_in }));
    for _ in 0..5 {
        let answer = read(&app, "192.0.2.1").await;
        assert_eq!(answer.header("retry-after"), "2");
        answer.refused(429, "rate_limited");
    }
    assert_eq!(others.asked(), 2);
    app.clock.advance(retry_in);
    others.answer(Ok(Taken::Passed { left: 0, whole_in }));
    read(&app, "192.0.2.1").await.expect(StatusCode::OK);
    assert_eq!(others.asked(), 3);
}

async fn without_word_of_the_others_requests_go_on_within_the_own_count() {
    let (app, others) = shared().await;
    others.answer(Err(Unshared::NoAnswer));
    for left in (0..10).rev() {
        let answer = read(&app, "192.0.2.1").await.expect(StatusCode::OK);
        assert!(
            answer
                .header("ratelimit")
                .starts_with(&format!("\"reads\";r={left};"))
        );
    }
    read(&app, "192.0.2.1").await.refused(429, "rate_limited");
    assert_eq!(others.asked(), 10, "who is refused here costs no call");
    let with_this_one = counted(&app, "rate_limits_unshared_total").await;
    assert_eq!(with_this_one, 11);
}

crate::variant::run_over! {
    [over_http, over_grpc], workers: 0, {
        an_answer_says_what_is_left_and_a_refusal_when_there_is_more,
        refusals_of_other_kinds_say_it_too,
        each_address_has_its_own_and_an_ipv6_network_is_one,
        a_session_pays_for_its_commands_and_its_address_for_the_session,
        a_session_brings_no_reads_of_its_own,
        a_key_has_no_limit_unless_one_is_set,
        wrong_credentials_count_as_reads_of_the_address,
        only_the_largest_answers_for_anyone_are_counted,
        ten_thousand_forged_addresses_are_one_caller,
        a_trusted_proxy_is_believed_and_what_its_clients_write_is_not,
        feed_streams_count_by_the_address_behind_the_proxy,
        refusals_are_counted_by_limit,
        what_others_counted_counts_and_is_not_asked_for_again_before_its_time,
        without_word_of_the_others_requests_go_on_within_the_own_count,
    }
}
