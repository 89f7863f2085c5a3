//! A server that moves its write-ahead log after every other commit: the program does so after thousands of
//! pages, which no rig fills between two faults. The length is an option of the ledger and no setting of the
//! program, so the test below, started again by a rig, serves on a ledger with that option.

use std::path::Path;
use std::sync::Arc;

use soldonce_clock::{SystemClock, SystemEntropy};
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::{Engine, World};
use soldonce_server::{Listeners, ServerSettings};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Run;
use super::cards::create_hall;
use super::scratch::Scratch;
use super::server::{ADMIN_KEY, LISTENS, Log, Server, serving_with};

/// Pages after which the log is moved.
const PAGES: u32 = 12;
/// Set in the process that serves: the data folder.
const FOLDER: &str = "SOLDONCE_TEST_SHORT_LOG";
/// The test that serves.
const TEST: &str = "crash::short_log::serves_and_ends_in_order";

/// The command line that serves `data`.
pub(super) fn command_line(data: &Path) -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let folder = format!("{FOLDER}={}", data.display());
    let program = program.to_str().unwrap();
    ["env", &folder, program, TEST, "--exact", "--nocapture"]
        .map(str::to_owned)
        .to_vec()
}

#[test]
fn serves_and_ends_in_order() {
    if let Some(data) = std::env::var_os(FOLDER) {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(serve(Path::new(&data)));
        return;
    }
    let scratch = Scratch::new(&Run::new("short-log"));
    let data = scratch.join("data");
    let server = Server::run(serving_with(&data, Log::Short), &data).unwrap();
    let mut client = server.client("short-log");
    assert_eq!(client.ask(&create_hall()).unwrap().status, 201);
    drop(client);
    assert!(server.stop().success());
}

/// Serves until SIGTERM, as the program does.
async fn serve(data: &Path) {
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    let world = World {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
    };
    let metrics = Arc::new(Metrics::default());
    let live = Arc::new(Live::new(Arc::clone(&metrics)));
    let options = SqliteOptions {
        log_pages: PAGES,
        ..SqliteOptions::new(data)
    };
    let clock = Arc::clone(&world.clock);
    let ledger = SqliteLedger::open(&options, clock, &SystemEntropy, live.clone()).unwrap();
    let engine = Engine::new(Arc::new(ledger), live, metrics, world);
    let engine = engine.await.unwrap();
    engine.adopt_admin_key(ADMIN_KEY).await.unwrap();
    let public = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // The test runner may have begun the line with the name of the test.
    println!("\n{LISTENS}{}", public.local_addr().unwrap());
    let listeners = Listeners {
        public,
        admin: None,
    };
    let shutdown = CancellationToken::new();
    let served = soldonce_server::run(
        listeners,
        engine,
        ServerSettings::default(),
        shutdown.clone(),
    );
    let end = async {
        terminate.recv().await;
        shutdown.cancel();
    };
    tokio::join!(served, end);
}
