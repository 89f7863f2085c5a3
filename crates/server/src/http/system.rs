//! Health, readiness, metrics.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use prometheus_client::encoding::text::encode;
use soldonce_engine::ClockState;

use super::answer;
use super::asked::Asked;
use super::classic;
use super::kinds;
use super::problem::{Handled, Problem};

const CLASSIC: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// `GET /healthz`: the process answers.
pub(super) async fn healthz(_: Asked) -> Handled {
    Ok(answer::json(StatusCode::OK, r#"{"status":"ok"}"#))
}

/// `GET /readyz`: commands are taken. Tells when the ledger's clock is `ahead` of the machine's, or `far_ahead`.
pub(super) async fn readyz(asked: Asked) -> Handled {
    let app = &asked.app;
    if app.shutdown.is_cancelled() {
        return Err(Problem::new(&kinds::SHUTTING_DOWN));
    }
    if !app.engine.is_writable() {
        return Err(Problem::new(&kinds::READ_ONLY));
    }
    let ahead = app.engine.clock_ahead_ms();
    let body = match ClockState::of(ahead) {
        ClockState::Together => r#"{"status":"ready"}"#.to_owned(),
        state @ (ClockState::Ahead | ClockState::FarAhead) => {
            let clock = state.as_str();
            format!(r#"{{"status":"ready","clock":"{clock}","clock_ahead_ms":{ahead}}}"#)
        }
    };
    Ok(answer::json(StatusCode::OK, body))
}

/// `GET /metrics`: `OpenMetrics` where `Accept` names it.
pub(super) async fn metrics(asked: Asked) -> Handled {
    let mut text = String::new();
    encode(&mut text, &asked.app.registry).map_err(|error| Problem::internal(&error))?;
    let (text, media) = if classic::is_open_metrics_asked(&asked.parts.headers) {
        (text, OPEN_METRICS)
    } else {
        (classic::of(&text), CLASSIC)
    };
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, media);
    Ok(response)
}
