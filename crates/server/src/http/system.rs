//! Health, readiness, metrics.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use prometheus_client::encoding::text::encode;

use super::answer;
use super::asked::Asked;
use super::kinds;
use super::problem::{Handled, Problem};

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// `GET /healthz`: the process answers.
pub(super) async fn healthz(_: Asked) -> Handled {
    Ok(answer::json(StatusCode::OK, r#"{"status":"ok"}"#))
}

/// `GET /readyz`: commands are taken.
pub(super) async fn readyz(asked: Asked) -> Handled {
    let app = &asked.app;
    if app.shutdown.is_cancelled() || !app.engine.is_writable() {
        return Err(Problem::new(&kinds::READ_ONLY));
    }
    Ok(answer::json(StatusCode::OK, r#"{"status":"ready"}"#))
}

/// `GET /metrics`
pub(super) async fn metrics(asked: Asked) -> Handled {
    let mut text = String::new();
    encode(&mut text, &asked.app.registry).map_err(|error| Problem::internal(&error))?;
    let mut response = Response::new(Body::from(text));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, OPEN_METRICS);
    Ok(response)
}
