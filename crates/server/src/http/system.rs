//! Health, readiness, metrics.

use axum::body::Body;
use axum::http::header;
use axum::response::IntoResponse;
use prometheus_client::encoding::text::encode;
use serde::Serialize;
use soldonce_engine::ClockState;
use utoipa::ToSchema;

use super::api_request::ApiRequest;
use super::operation::{Tag, get};
use super::problem::{Handled, Problem};
use super::route::Admission::Anyone;
use super::route::METRICS;
use super::table::Table;
use super::{answer, kinds, prometheus};

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::System);
    table.add(
        get("/healthz", Anyone)
            .id("healthz")
            .summary("The process answers")
            .gives_bare::<ServerStatus>("It does"),
        healthz,
    );
    table.add(
        get("/readyz", Anyone)
            .id("readyz")
            .summary("Commands are taken")
            .refuses(&[&[&kinds::READ_ONLY, &kinds::SHUTTING_DOWN]])
            .gives_bare::<ServerStatus>("They are"),
        readyz,
    );
    table.add(
        get(METRICS, Anyone)
            .id("metrics")
            .summary("Counters and times; on the admin listener if there is one")
            .sends(
                "text/plain",
                "Prometheus text; OpenMetrics where `Accept` names it",
            ),
        metrics,
    );
}

const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How the server is.
#[derive(Serialize, ToSchema)]
struct ServerStatus {
    status: StatusWord,
    /// Left out while the ledger's clock is not ahead of the machine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    clock: Option<ClockWord>,
    /// How far the ledger's clock is ahead of the machine's, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    clock_ahead_ms: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StatusWord {
    Ok,
    Ready,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ClockWord {
    Ahead,
    FarAhead,
}

/// Answers `GET /healthz`: the process answers.
async fn healthz(_: ApiRequest) -> Handled {
    let status = ServerStatus {
        status: StatusWord::Ok,
        clock: None,
        clock_ahead_ms: None,
    };
    Ok(answer::plain(&status))
}

/// Answers `GET /readyz`: commands are taken. Tells when the ledger's clock is `ahead` of the
/// machine's, or `far_ahead`.
async fn readyz(req: ApiRequest) -> Handled {
    let app = &req.app;
    if app.shutdown.is_cancelled() {
        return Err(Problem::new(&kinds::SHUTTING_DOWN));
    }
    if !app.engine.is_writable() {
        return Err(Problem::new(&kinds::READ_ONLY));
    }
    let ahead = app.engine.clock_ahead_ms();
    let clock = match ClockState::of(ahead) {
        ClockState::Together => None,
        ClockState::Ahead => Some(ClockWord::Ahead),
        ClockState::FarAhead => Some(ClockWord::FarAhead),
    };
    let status = ServerStatus {
        status: StatusWord::Ready,
        clock_ahead_ms: clock.as_ref().and_then(|_| u64::try_from(ahead).ok()),
        clock,
    };
    Ok(answer::plain(&status))
}

/// Answers `GET /metrics`: `OpenMetrics` where `Accept` names it.
async fn metrics(req: ApiRequest) -> Handled {
    let engine = &req.app.engine;
    let writable = i64::from(engine.is_writable());
    engine.metrics().ledger_writable.set(writable);
    let mut text = String::new();
    encode(&mut text, &req.app.registry).map_err(|error| Problem::internal(&error))?;
    let (text, media) = if prometheus::is_open_metrics_asked(&req.parts.headers) {
        (text, OPEN_METRICS)
    } else {
        (prometheus::of(&text), CLASSIC)
    };
    let fields = [(header::CONTENT_TYPE, media)];
    Ok((fields, Body::from(text)).into_response())
}
