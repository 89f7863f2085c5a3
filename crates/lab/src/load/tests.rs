//! The generator against servers that behave, refuse, break off and never answer.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::request::Turn;
use super::*;
use crate::kit::LoadError;

/// Takes connections one after the other and answers each request with the next of `answers`,
/// round and round; an empty answer closes the connection.
async fn server(answers: &'static [&'static str]) -> (std::net::SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut answers = answers.iter().cycle();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            while answer(&mut stream, &mut answers).await {}
        }
    });
    (address, tasks)
}

/// Answers one request; false when the connection ends.
async fn answer(
    stream: &mut TcpStream,
    answers: &mut impl Iterator<Item = &'static &'static str>,
) -> bool {
    let mut request = [0; 1_024];
    if stream.read(&mut request).await.unwrap_or(0) == 0 {
        return false;
    }
    let answer = answers.next().unwrap();
    stream.write_all(answer.as_bytes()).await.unwrap();
    !answer.is_empty()
}

const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const CONFLICT: &str = "HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n";
const LAST: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const HALF: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";

async fn load(answers: &'static [&'static str], requests: u64, makers: Makers) -> LoadReport {
    let (address, _tasks) = server(answers).await;
    let until = Until::Requests(requests);
    run(LoadPlan::http(address, 1, Pace::Closed, until), &makers)
        .await
        .unwrap()
}

fn fixed() -> Makers {
    Box::new(|_| always(GET.to_vec()))
}

#[tokio::test]
async fn every_answer_is_counted_by_its_status() {
    let report = load(&[OK, CONFLICT, OK], 300, fixed()).await;
    assert_eq!(report.statuses, BTreeMap::from([(200, 200), (409, 100)]));
    assert_eq!(
        (report.sent, report.errors.len(), report.missed),
        (300, 0, 0)
    );
    assert!(report.latency_us.p50 <= report.latency_us.p99);
}

#[tokio::test]
async fn a_closed_connection_is_opened_anew_and_a_broken_answer_is_an_error() {
    let report = load(&[OK, LAST, "", OK], 8, fixed()).await;
    assert_eq!(report.statuses, BTreeMap::from([(200, 6)]));
    assert_eq!(report.errors, BTreeMap::from([(LoadError::Closed, 2)]));
    assert_eq!(report.sent, 8);
}

/// Ends its part after three answers, whose bodies it checks.
fn three_turns(seen: &mut Vec<u16>, turn: Turn<'_>, buffer: &mut Vec<u8>) -> bool {
    if let Some(last) = turn.last {
        seen.push(last.status);
        let body: &[u8] = if last.status == 200 { b"ok" } else { b"" };
        assert_eq!(last.body, body);
    }
    assert_eq!(usize::try_from(turn.request).unwrap(), seen.len());
    buffer.extend_from_slice(GET);
    *seen != [200, 409, 200]
}

#[tokio::test]
async fn a_maker_sees_each_answer_and_may_end_its_part() {
    let makers: Makers = Box::new(|_| {
        let mut seen = Vec::new();
        Box::new(move |turn, buffer| three_turns(&mut seen, turn, buffer))
    });
    let report = load(&[OK, CONFLICT], 1_000, makers).await;
    assert_eq!(report.statuses, BTreeMap::from([(200, 2), (409, 1)]));
}

#[tokio::test]
async fn a_request_unanswered_when_overtime_ends_is_counted() {
    let (address, _tasks) = server(&[HALF]).await;
    let plan = LoadPlan::http(address, 1, Pace::Closed, Until::Requests(1));
    let arrivals = Arc::new(Arrivals::new(plan, SystemClock.boot()));
    let connection = Connection::open(Transport::Http, address).await.unwrap();
    let worker = Worker::new(connection, fixed()(0), arrivals).unwrap();
    let (overtime, mut tasks) = (CancellationToken::new(), JoinSet::new());
    tasks.spawn(worker.run(overtime.clone()));
    // One turn for the worker: it sends, and finds no answer yet.
    tokio::task::yield_now().await;
    overtime.cancel();
    let report = tasks
        .join_next()
        .await
        .unwrap()
        .unwrap()
        .report(Duration::from_secs(1), 0);
    assert_eq!(report.errors, BTreeMap::from([(LoadError::Unanswered, 1)]));
}

#[tokio::test]
async fn an_open_loop_keeps_its_distances_and_counts_lateness() {
    let (address, _tasks) = server(&[OK]).await;
    let plan = LoadPlan::http(address, 1, Pace::Open(1_000), Until::Requests(50));
    let report = run(plan, &fixed()).await.unwrap();
    assert_eq!(report.statuses, BTreeMap::from([(200, 50)]));
    assert!(
        report.took_ms >= 49,
        "50 requests at 1,000/s within {} ms",
        report.took_ms
    );
}
