//! The ceiling: a request of a hold's size is read into a struct and answered with JSON of a hold's
//! size, on the same accept loop, with nothing behind it.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use soldonce_server::{AcceptLimits, listen, serve};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::kit::{serves_line, stop_signal};
use crate::load::{Makers, Requests, always};
use crate::output::print;

const PATH: &str = "/v1/events/hamlet-1/holds";
const REQUEST: &str = r#"{"holder":"user-42","units":[{"seat":"A-1"}],"ttl_ms":300000}"#;

/// Shaped as a request for a hold (api.md 3).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EchoRequest {
    holder: String,
    units: Vec<EchoUnit>,
    ttl_ms: u64,
}

#[derive(Debug, Deserialize, Serialize)]
struct EchoUnit {
    seat: String,
}

/// Shaped as a hold (api.md 3).
#[derive(Debug, Serialize)]
struct EchoAnswer {
    id: &'static str,
    secret: &'static str,
    event: &'static str,
    holder: String,
    state: &'static str,
    fence: u64,
    units: Vec<EchoUnit>,
    total: u64,
    currency: &'static str,
    created_at: &'static str,
    expires_at: &'static str,
    max_expires_at: &'static str,
    server_time: &'static str,
    booking: Option<&'static str>,
}

async fn echo(Json(request): Json<EchoRequest>) -> Json<EchoAnswer> {
    Json(EchoAnswer {
        id: "hld_01890a5d-ac96-774b-bcce-b302099a8057",
        secret: "hs_0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        event: "hamlet-1",
        holder: request.holder,
        state: "active",
        fence: 7,
        units: request.units,
        total: request.ttl_ms,
        currency: "EUR",
        created_at: "2026-12-01T19:30:00.000Z",
        expires_at: "2026-12-01T19:35:00.000Z",
        max_expires_at: "2026-12-01T20:00:00.000Z",
        server_time: "2026-12-01T19:30:00.000Z",
        booking: None,
    })
}

/// The same request on every connection.
pub(super) fn makers(address: SocketAddr) -> Makers {
    let mut request = Vec::new();
    let requests = Requests::new(address, "none");
    requests.post(
        &mut request,
        format_args!("{PATH}"),
        format_args!("{REQUEST}"),
    );
    Box::new(move |_connection| always(request.clone()))
}

/// Runs the hidden command `bench-server`: serves the echo on any free port until a signal ends it.
pub(crate) fn run_server() -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let router = Router::new().route("/v1/events/{event}/holds", post(echo));
        let listener = listen("127.0.0.1:0").await;
        let listener = listener.context("no port on 127.0.0.1")?;
        let address = listener.local_addr()?;
        let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let limits = AcceptLimits::default();
        tasks.spawn(serve(listener, router, limits, shutdown.clone()));
        print(&serves_line("echo", address))?;
        stop_signal().await;
        shutdown.cancel();
        let drained = tasks.join_next().await;
        match drained.context("the server had no task")??.panicked {
            0 => Ok(Exit::Done),
            lost => bail!("the server lost {lost} connections to panics"),
        }
    })
}
