//! Honest buyers among thousands of connections that mean no good, from several addresses: what they
//! wait for and what the server takes of memory, in one run with the others and with a busy thread.

#![expect(clippy::print_stdout, reason = "the rig says what it measured")]
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use soldonce_clock::{Clock, SystemClock};
use soldonce_server::limits::{CONNECTIONS_MAX, CONNECTIONS_MEMORY_BYTES_MAX};
use soldonce_testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::crash::client::Ask;
use crate::crash::server::{PROGRAM, Server, arguments};
use crate::shop::{hall, hold};
use crate::store::folder;

/// The addresses of those who mean no good, each with as many connections as it may have.
const ADDRESSES: usize = 8;
const BUYERS: usize = 4;
const HOLDS: usize = 1_500;
/// How long buyers may wait with attackers, in hundredths of their time with a busy thread.
const RATIO_MAX: u64 = 150;
/// What the server and the test itself have open besides.
const OTHER_FILES: u64 = 512;

/// Nothing after the first line of a request: it waits for a head.
const SLOW_HEAD: &[u8] = b"GET / HTTP/1.1\r\nhost: h";
const ONE_REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n";

/// HTTP/2 with closed windows: eight answers of `/metrics` that are never taken.
fn closed_windows() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    let head = b"\x82\x86\x04\x08/metrics\x41\x04here";
    for stream in 0..8_u8 {
        bytes.extend([0, 0, u8::try_from(head.len()).unwrap(), 1, 5, 0, 0, 0]);
        bytes.push(2 * stream + 1);
        bytes.extend(head);
    }
    bytes
}

/// One that comes again whenever it is sent away.
async fn mean_no_good(server: SocketAddr, own: Ipv4Addr, says: Vec<u8>, came: Arc<AtomicUsize>) {
    let mut is_first = true;
    loop {
        if let Ok(mut stream) = connect(server, own).await
            && stream.write_all(&says).await.is_ok()
        {
            if std::mem::take(&mut is_first) {
                came.fetch_add(1, Ordering::Relaxed);
            }
            let mut heard = [0; 4_096];
            while stream.read(&mut heard).await.is_ok_and(|read| read > 0) {}
        }
        tokio::task::yield_now().await;
    }
}

async fn connect(server: SocketAddr, own: Ipv4Addr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((own, 0).into())?;
    socket.connect(server).await
}

/// The middle of three rounds' 99th percentiles, microseconds: one pause of the machine decides none.
fn honest_p99(server: &Server, scene: &str) -> u64 {
    let mut rounds = [0, 1, 2].map(|round| p99_of_round(server, &format!("{scene}-{round}")));
    rounds.sort_unstable();
    rounds[1]
}

/// Runs `measured` while a thread is always busy, as that of the attackers is: what it takes of the machine is no work
/// of the server.
fn with_a_busy_thread<T>(measured: impl FnOnce() -> T) -> T {
    let running = Arc::new(());
    let watched = Arc::downgrade(&running);
    thread::spawn(move || {
        while watched.strong_count() > 0 {
            std::hint::spin_loop();
        }
    });
    let result = measured();
    drop(running);
    result
}

/// The 99th percentile of a hold and its release, microseconds.
fn p99_of_round(server: &Server, round: &str) -> u64 {
    let buyer = |buyer: usize| {
        let row = char::from(b'A' + u8::try_from(buyer).unwrap());
        let mut client = server.client(&format!("{round}-{buyer}"));
        let hold = hold("siege", &format!("u{buyer}"), &format!("{row}-1"));
        let mut took = Vec::with_capacity(HOLDS);
        for _ in 0..HOLDS {
            let began = SystemClock.boot();
            let made = client.ask(&hold).unwrap();
            assert_eq!(made.status, 201, "{}", made.shown());
            let id = made.json()["id"].as_str().unwrap().to_owned();
            let release = Ask::new("DELETE", format!("/v1/holds/{id}"), None);
            let released = client.ask(&release).unwrap();
            assert!(released.is_success(), "{}", released.shown());
            took.push(SystemClock.boot().since(began).as_micros());
        }
        took
    };
    let mut took: Vec<u128> = thread::scope(|scope| {
        let buyers: Vec<_> = (0..BUYERS)
            .map(|at| scope.spawn(move || buyer(at)))
            .collect();
        let took = buyers.into_iter().map(|buyer| buyer.join().unwrap());
        took.flatten().collect()
    });
    took.sort_unstable();
    u64::try_from(took[took.len() * 99 / 100]).unwrap()
}

fn resident_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() * 1_024
}

/// As many connections as the descriptors of both processes allow.
fn connections() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let most = limit.maximum.unwrap_or(u64::MAX) - OTHER_FILES;
    usize::try_from(most).unwrap().min(CONNECTIONS_MAX)
}

#[test]
fn honest_buyers_are_served_beside_thousands_who_mean_no_good() {
    let data = folder("siege").join("data");
    let mut command = std::process::Command::new(PROGRAM);
    command
        .args(arguments(&data))
        .args(["--shoppers", "closed"]);
    let server = Server::run(command, &data).unwrap();
    let create = Ask::post("/v1/events", hall("siege", 10, 20));
    assert_eq!(server.client("maker").ask(&create).unwrap().status, 201);
    let idle = honest_p99(&server, "idle");
    let quiet = with_a_busy_thread(|| honest_p99(&server, "quiet"));
    let before = resident_bytes(&server);

    let count = connections();
    let came = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for at in 0..count {
        let says = [
            b"".to_vec(),
            SLOW_HEAD.to_vec(),
            ONE_REQUEST.to_vec(),
            closed_windows(),
        ];
        let own = u8::try_from(2 + at / says.len() % ADDRESSES).unwrap();
        let (own, says) = (Ipv4Addr::new(127, 0, 0, own), says[at % says.len()].clone());
        runtime.spawn(mean_no_good(server.address, own, says, Arc::clone(&came)));
    }
    let patience = 4 * soldonce_testkit::PATIENCE;
    let most = count * 9 / 10;
    until("they came", patience, || {
        came.load(Ordering::Relaxed) >= most
    })
    .unwrap();
    let attacked = honest_p99(&server, "attacked");
    let took = resident_bytes(&server).saturating_sub(before);
    runtime.shutdown_background();
    // For the record of `./test long`.
    println!(
        "{count} connections: p99 {idle} us, {quiet} us with a busy thread, {attacked} us with attackers; {} MB",
        took / 1_000_000
    );
    assert!(took < CONNECTIONS_MEMORY_BYTES_MAX, "{took} bytes");
    assert!(
        100 * attacked <= RATIO_MAX * quiet,
        "{attacked} us with attackers, {quiet} us with a busy thread"
    );
    assert!(server.stop().success());
}
