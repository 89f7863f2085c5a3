//! Where messages go, and where they never do (assurance.md S11): judged on the address that is
//! connected to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use soldonce_engine::EngineError;
use soldonce_engine::webhook::address::Destinations;
use soldonce_engine::webhook::{Kinds, Lookup, LookupFuture, Sender, SystemLookup};
use soldonce_testkit::webhooks::{Answer, Receiver};

use super::rig::Rig;
use crate::ledgers::TestLedger;

/// Gives its answers one after the other, the last one for ever, and counts the questions.
#[derive(Clone)]
struct Turning {
    answers: Arc<[Vec<SocketAddr>]>,
    asked: Arc<AtomicUsize>,
}

impl Turning {
    fn new(answers: &[&[SocketAddr]]) -> Self {
        Self {
            answers: answers.iter().map(|one| one.to_vec()).collect(),
            asked: Arc::default(),
        }
    }
}

impl Lookup for Turning {
    fn lookup(&self, _host: String) -> LookupFuture {
        let at = self.asked.fetch_add(1, Ordering::Relaxed);
        let at = at.min(self.answers.len() - 1);
        Box::pin(std::future::ready(Ok(self.answers[at].clone())))
    }
}

fn port_of(receiver: &Receiver) -> u16 {
    receiver.address().port()
}

/// The problem of the first attempt at this URL; the endpoint was made while it was still allowed.
async fn problem_at(url: &str, by: Destinations, lookup: impl Lookup) -> (Option<String>, usize) {
    let test = TestLedger::sqlite();
    let event = test.event().await;
    let mut rig = Rig::looking_up(test, Destinations::Any, lookup).await;
    let here = rig.receiver.url();
    let (endpoint, _) = rig.endpoint_at(&here, Kinds::ALL).await.unwrap();
    let moved = url.replace("PORT", &port_of(&rig.receiver).to_string());
    let ledger = Arc::clone(&rig.test.ledger);
    let webhooks = ledger.webhooks();
    let rest = soldonce_engine::webhook::Endpoint {
        id: soldonce_engine::webhook::EndpointId::from_bytes([3; 16]),
        url: moved.into(),
        ..endpoint.clone()
    };
    let delete = soldonce_engine::webhook::EndpointChange::Delete;
    let gone = webhooks.change_endpoint(endpoint.id, delete);
    gone.await.unwrap();
    let new = soldonce_engine::ledger::NewEndpoint::new(rest.clone(), None);
    webhooks.add_endpoint(new).await.unwrap();
    rig.sold(&event, "ann", "A-1").await;
    if by == Destinations::Public {
        let strict = Sender::new(by, Arc::new(SystemLookup)).unwrap();
        let engine = super::rig::engine(&rig.test, strict).await;
        rig.run_of(engine);
    } else {
        rig.run();
    }
    let log = rig.until(&rest, 200, |log| log[0].attempts > 0).await;
    (log[0].problem.clone(), rig.receiver.connections())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_near_is_reached_when_only_the_internet_may_be() {
    for url in [
        "https://127.0.0.1:PORT/",
        "https://2130706433:PORT/",
        "https://0x7f.1:PORT/",
        "https://0177.0.0.1:PORT/",
        "https://[::1]:PORT/",
        "https://[::ffff:127.0.0.1]:PORT/",
        "https://localhost:PORT/",
        "http://127.0.0.1:PORT/",
    ] {
        let (problem, connections) = problem_at(url, Destinations::Public, SystemLookup).await;
        assert_eq!(problem.as_deref(), Some("forbidden_address"), "{url}");
        assert_eq!(connections, 0, "{url}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_judged_by_where_it_leads() {
    let metadata = SocketAddr::from(([169, 254, 169, 254], 0));
    let mapped: SocketAddr = "[::ffff:169.254.169.254]:0".parse().unwrap();
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let cases: [&[SocketAddr]; 4] = [&[metadata], &[mapped], &[here, metadata], &[metadata, here]];
    for answer in cases {
        let turning = Turning::new(&[answer]);
        let url = "http://good.example:PORT/";
        let (problem, connections) = problem_at(url, Destinations::Any, turning).await;
        assert_eq!(problem.as_deref(), Some("forbidden_address"), "{answer:?}");
        assert_eq!(connections, 0, "{answer:?}");
    }
    // The same name, with nothing forbidden behind it, is reached: the judge is not simply against all.
    let turning = Turning::new(&[&[here]]);
    let url = "http://good.example:PORT/";
    let (problem, connections) = problem_at(url, Destinations::Any, turning).await;
    assert_eq!((problem, connections), (None, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_turns_is_caught_at_its_next_connection() {
    let test = TestLedger::sqlite();
    let event = test.event().await;
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let metadata = SocketAddr::from(([169, 254, 169, 254], 0));
    let turning = Turning::new(&[&[here], &[metadata]]);
    let asked = Arc::clone(&turning.asked);
    let mut rig = Rig::looking_up(test, Destinations::Any, turning).await;
    let url = format!("http://good.example:{}/", port_of(&rig.receiver));
    let (endpoint, _) = rig.endpoint_at(&url, Kinds::ALL).await.unwrap();
    rig.run();
    rig.sold(&event, "ann", "A-1").await;
    rig.until_over(&endpoint, 1).await;
    rig.sold(&event, "bob", "A-2").await;
    let log = rig.until(&endpoint, 200, |log| log[0].attempts > 0).await;
    assert_eq!(log[0].problem.as_deref(), Some("forbidden_address"));
    assert_eq!(rig.receiver.connections(), 1);
    assert_eq!(
        asked.load(Ordering::Relaxed),
        2,
        "looked up once for each connection"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_to_metadata_or_anywhere_is_a_failure() {
    let test = TestLedger::sqlite();
    let event = test.event().await;
    let mut rig = Rig::on(test).await;
    let elsewhere = Receiver::start().unwrap();
    rig.receiver.answer_next([
        Answer::Redirect("http://169.254.169.254/latest/meta-data/".to_owned()),
        Answer::Redirect(elsewhere.url()),
    ]);
    let (endpoint, _) = rig.endpoint().await;
    rig.run();
    rig.sold(&event, "ann", "A-1").await;
    rig.sold(&event, "bob", "A-2").await;
    let both = |log: &[soldonce_engine::webhook::Delivery]| log.iter().all(|one| one.attempts == 1);
    // None of them is tried again before the other has had its answer.
    let log = rig.until(&endpoint, 5, both).await;
    for delivery in log {
        assert_eq!(delivery.problem.as_deref(), Some("redirected"));
        assert_eq!(delivery.status, Some(307));
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_end_costs_nothing_and_a_closed_port_is_no_answer() {
    let test = TestLedger::sqlite();
    let event = test.event().await;
    let mut rig = Rig::on(test).await;
    rig.receiver.answer_next([Answer::Endless]);
    let (endpoint, _) = rig.endpoint().await;
    let closed = Receiver::start().unwrap().url();
    let (silent, _) = rig.endpoint_at(&closed, Kinds::ALL).await.unwrap();
    rig.run();
    rig.sold(&event, "ann", "A-1").await;
    let log = rig.until_over(&endpoint, 1).await;
    assert_eq!((log[0].status, &log[0].problem), (Some(200), &None));
    let log = rig.until(&silent, 200, |log| log[0].attempts > 0).await;
    assert_eq!(log[0].problem.as_deref(), Some("no_connection"));
}

#[tokio::test]
async fn an_endpoint_that_could_not_be_reached_is_not_taken() {
    let test = TestLedger::sqlite();
    let rig = Rig::looking_up(test, Destinations::Public, SystemLookup).await;
    for url in [
        "http://example.org/",
        "https://127.0.0.1/",
        "https://10.1.2.3/",
        "https://169.254.169.254/",
        "https://[::ffff:10.0.0.1]/",
        "https://3232235777/",
        "no URL",
    ] {
        let refused = rig.endpoint_at(url, Kinds::ALL).await;
        assert!(matches!(refused, Err(EngineError::Rejected(_))), "{url}");
    }
    for _ in 0..16 {
        let url = "https://example.org/hooks";
        rig.endpoint_at(url, Kinds::ALL).await.unwrap();
    }
    let refused = rig.endpoint_at("https://example.org/", Kinds::ALL);
    assert!(refused.await.is_err(), "sixteen are enough");
}
