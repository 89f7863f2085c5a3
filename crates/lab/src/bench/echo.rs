//! The ceiling: a request of a hold's size is read into a struct and answered with JSON of a hold's
//! size, on the same accept loop, with nothing behind it. Over gRPC the same by tonic, with generated messages.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use axum::extract::Request;
use axum::routing::post;
use axum::{Json, Router};
use prost::Message;
use serde::{Deserialize, Serialize};
use soldonce_server::{AcceptLimits, listen, serve};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::server::Grpc;
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::exit::Exit;
use crate::kit::{serves_line, stop_signal};
use crate::load::{HOLD, HoldRequest, Holds, Makers, Requests, Transport, Wish, always};
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

/// Shaped as a hold (`proto/`).
#[derive(Clone, PartialEq, Message)]
struct GrpcAnswer {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, optional, tag = "2")]
    secret: Option<String>,
    #[prost(string, tag = "3")]
    event: String,
    #[prost(string, tag = "4")]
    holder: String,
    #[prost(string, tag = "5")]
    state: String,
    #[prost(uint64, tag = "6")]
    fence: u64,
    #[prost(message, repeated, tag = "7")]
    units: Vec<GrpcLine>,
    #[prost(int64, tag = "8")]
    total: i64,
    #[prost(string, tag = "9")]
    currency: String,
    #[prost(message, optional, tag = "10")]
    created_at: Option<GrpcTime>,
    #[prost(message, optional, tag = "11")]
    expires_at: Option<GrpcTime>,
    #[prost(message, optional, tag = "12")]
    max_expires_at: Option<GrpcTime>,
    #[prost(message, optional, tag = "17")]
    server_time: Option<GrpcTime>,
}

#[derive(Clone, PartialEq, Message)]
struct GrpcLine {
    #[prost(string, optional, tag = "1")]
    seat: Option<String>,
    #[prost(int64, tag = "4")]
    price: i64,
    #[prost(uint64, tag = "5")]
    version: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct GrpcTime {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

async fn grpc_echo(
    call: tonic::Request<HoldRequest>,
) -> Result<tonic::Response<GrpcAnswer>, tonic::Status> {
    let asked = call.into_inner();
    let units = asked.units.into_iter();
    let time = Some(GrpcTime {
        seconds: 1_796_126_400,
        nanos: 7_000_000,
    });
    let line = |seat| GrpcLine {
        seat,
        price: 4_500,
        version: 1,
    };
    Ok(tonic::Response::new(GrpcAnswer {
        id: "hld_01890a5d-ac96-774b-bcce-b302099a8057".to_owned(),
        secret: Some("hs_0f1e2d3c4b5a69788796a5b4c3d2e1f0".to_owned()),
        event: asked.event,
        holder: asked.holder.unwrap_or_default(),
        state: "active".to_owned(),
        fence: 7,
        units: units.map(|unit| line(unit.seat)).collect(),
        total: 4_500,
        currency: "EUR".to_owned(),
        created_at: time,
        expires_at: time,
        max_expires_at: time,
        server_time: time,
    }))
}

async fn call(request: Request) -> axum::http::Response<tonic::body::Body> {
    let mut grpc = Grpc::new(ProstCodec::<GrpcAnswer, HoldRequest>::default());
    grpc.unary(service_fn(grpc_echo), request).await
}

/// Sends the same request on every connection.
pub(super) fn makers(transport: Transport, address: SocketAddr) -> Makers {
    let mut request = Vec::new();
    match transport {
        Transport::Http => Requests::new(address, "none").post(
            &mut request,
            format_args!("{PATH}"),
            format_args!("{REQUEST}"),
        ),
        Transport::Grpc => {
            let wish = Wish {
                event: format_args!("hamlet-1"),
                holder: Some(format_args!("user-42")),
                seat: format_args!("A-1"),
            };
            Holds::new(transport, address, "none").write(&mut request, wish);
        }
    }
    Box::new(move |_connection| always(request.clone()))
}

/// Runs the hidden command `bench-server`: serves the echo on any free port until a signal ends it.
pub(crate) fn run_server() -> anyhow::Result<Exit> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let router = Router::new()
            .route("/v1/events/{event}/holds", post(echo))
            .route(HOLD, post(call));
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
