//! The HTTP server: reads requests, lets the API answer them, writes the answers. A call continues
//! when its caller closes the connection, as it does at Stripe. The same thread sends the notices.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::api::{Api, Reply, Request};
use super::form::Form;
use super::idempotency::Answer;
use super::limits::BODY_BYTES_MAX;

/// CORS headers: what a page of another origin may send and read.
const CORS: [(&str, &str); 4] = [
    ("access-control-allow-origin", "*"),
    ("access-control-allow-methods", "GET, POST, OPTIONS"),
    (
        "access-control-allow-headers",
        "authorization, content-type, idempotency-key, stripe-account, stripe-version",
    ),
    ("access-control-max-age", "600"),
];

/// Calls in progress, also those whose callers closed the connection.
type Calls = Arc<Mutex<JoinSet<()>>>;

/// Serves until the sender of `stopped` is dropped; calls in progress are dropped with the runtime.
pub(super) fn run(listener: std::net::TcpListener, api: &Arc<Api>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let Ok(listener) = TcpListener::from_std(listener) else {
            return;
        };
        let post = Arc::clone(&api.post);
        tokio::select! {
            never = serve(listener, Arc::clone(api)) => match never {},
            () = post.run() => {}
            // Its sender was dropped.
            _ = stopped => {}
        }
    });
}

/// Accepts connections until it is dropped; connections and calls in progress end with it.
async fn serve(listener: TcpListener, api: Arc<Api>) -> Infallible {
    let calls = Calls::default();
    let mut connections = JoinSet::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(connection(stream, Arc::clone(&api), Arc::clone(&calls)));
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, api: Arc<Api>, calls: Calls) {
    let service = service_fn(move |request| {
        let (api, calls) = (Arc::clone(&api), Arc::clone(&calls));
        async move { respond(request, api, &calls).await }
    });
    let stream = TokioIo::new(stream);
    let served = http1::Builder::new().serve_connection(stream, service);
    // A caller that closes its connection is not our failure.
    served.await.ok();
}

/// Answers a request. An error closes its connection without an answer.
async fn respond(
    request: hyper::Request<Incoming>,
    api: Arc<Api>,
    calls: &Calls,
) -> std::io::Result<Response<Full<Bytes>>> {
    if request.method() == Method::OPTIONS {
        return Ok(response(StatusCode::NO_CONTENT, String::new()));
    }
    let id = api.request_id();
    let Some(request) = read(request).await else {
        let message = "the body is no form, or too long".to_owned();
        return Ok(response(StatusCode::BAD_REQUEST, message));
    };
    let (reply, replied) = oneshot::channel::<Reply>();
    {
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        while calls.try_join_next().is_some() {}
        calls.spawn(async move {
            let answer = api.answer(&request).await;
            // The client may have closed its connection.
            reply.send(answer).ok();
        });
    }
    match replied.await {
        Ok(Some(answer)) => Ok(answered(answer, &id)),
        Ok(None) | Err(_) => Err(std::io::Error::other("closed on purpose")),
    }
}

async fn read(request: hyper::Request<Incoming>) -> Option<Request> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await.ok()?;
    let body = body.to_bytes();
    let text = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
    let bearer = text(AUTHORIZATION.as_str());
    let form = if head.method == Method::GET {
        Form::parse(head.uri.query().unwrap_or_default())?
    } else {
        posted(&head.headers, &body)?
    };
    Some(Request {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        form,
        bearer: bearer.map(|value| value.trim_start_matches("Bearer ").to_owned()),
        key: text("idempotency-key"),
        version: text("stripe-version"),
        account: text("stripe-account"),
    })
}

/// Parses the form of a body. The bank's page sends JSON, whose only field is `ok`.
fn posted(headers: &HeaderMap, body: &[u8]) -> Option<Form> {
    let kind = headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("application/json")) {
        let json: Value = serde_json::from_slice(body).ok()?;
        let is_ok = json.get("ok").and_then(Value::as_bool) == Some(true);
        return Form::parse(if is_ok { "ok=true" } else { "ok=false" });
    }
    Form::parse(std::str::from_utf8(body).ok()?)
}

fn answered(answer: Answer, id: &str) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = response(status, answer.body);
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert("request-id", id);
    }
    if answer.is_replayed {
        headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    if let Some(seconds) = answer.retry_after_s {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    response
}

fn response(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in CORS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
