//! gRPC on the same port: each operation of the API is a method too. A call is translated into the request of its
//! operation, the operation's own handler answers it, and the answer is translated back: there is one set of rules.
//! The methods are those of `proto/`; what a message has, the descriptors say.

mod codec;
mod deadline;
mod feed;
mod health;
mod message;
mod method;
mod read;
mod shape;
mod status;
mod write;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::post;
use http_body_util::{BodyExt, Limited};
use prost_reflect::DescriptorPool;
use tonic::Status;
use tonic_health::pb::health_server::HealthServer;

pub(super) use self::method::Method;

use self::health::Readiness;
use super::api_request::read_body;
use super::app::App;
use super::endpoint::Endpoint;
use super::kinds;
use super::problem::Problem;
use super::rates;
use super::route::{Admission, BodySize, FOR_ALL, Route, Verb};
use crate::limits::BODY_BYTES_MAX;

/// The services of `proto/`, compiled. A test compares it with the text.
const SERVICES: &[u8] = include_bytes!("soldonce.binpb");

/// Returns the descriptors of the messages.
fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| DescriptorPool::decode(SERVICES).unwrap_or_default())
}

pub(super) fn add(router: Router<Arc<App>>, method: &Arc<Method>) -> Router<Arc<App>> {
    let path = method.path();
    let method = Arc::clone(method);
    let answer = move |State(app): State<Arc<App>>, request: Request| answer(app, method, request);
    router.route(&path, post(answer))
}

/// Adds health, which asks `ready`, and reflection.
pub(super) fn add_services(
    router: Router<Arc<App>>,
    app: &Arc<App>,
    ready: Endpoint,
) -> Router<Arc<App>> {
    let health = HealthServer::new(Readiness::new(Arc::clone(app), ready));
    let services = Router::new().route_service("/grpc.health.v1.Health/{method}", health);
    let services = services.merge(reflection().clone());
    let services = services.layer(from_fn_with_state(Arc::clone(app), bounded));
    router.merge(services.with_state(()))
}

/// The one method of these services that is no stream: what probes ask.
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// Counts a call that needs no key as a read of its address, and bounds its stream: what it may ask in all, and how
/// many an address may have.
async fn bounded(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let route = Route::new(Verb::Any, FOR_ALL, Admission::Anyone);
    let counted = app
        .count(route, &Ok(None), &parts, app.clock().boot())
        .await;
    let permit = match counted.iter().flatten().find_map(rates::refusal) {
        Some(too_often) => Err(too_often),
        None if parts.uri.path() == CHECK => Ok(None),
        None => app.enter_stream(&parts).map(Some),
    };
    let body = match permit {
        // What is no stream is sent whole, and in time.
        Ok(None) => whole(&app, body).await.map(|body| (None, body)),
        Ok(permit) => Ok((permit, Body::new(Limited::new(body, BODY_BYTES_MAX)))),
        Err(problem) => Err(problem),
    };
    let (permit, body) = match body {
        Ok(admitted) => admitted,
        Err(problem) => return refused(status::refused(problem)),
    };
    let answer = next.run(Request::from_parts(parts, body)).await;
    answer.map(|body| {
        Body::new(body.map_frame(move |frame| {
            // Given back when the stream ends.
            let _open = &permit;
            frame
        }))
    })
}

async fn whole(app: &App, mut body: Body) -> Result<Body, Problem> {
    let sent = read_body(app, &mut body, BodySize::Usual).await?;
    Ok(Body::from(sent))
}

/// Builds the answer to a call of what its operation refuses, or would.
fn refused(refusal: Response) -> Response {
    codec::refusal(status::of(refusal))
}

/// Returns the router of both versions of reflection: clients ask for the newer one first.
fn reflection() -> &'static Router {
    static ROUTER: OnceLock<Router> = OnceLock::new();
    ROUTER.get_or_init(|| {
        let builder = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(SERVICES)
        };
        // They fail where the descriptors cannot be read, which a test sees.
        let (Ok(v1), Ok(v1alpha)) = (builder().build_v1(), builder().build_v1alpha()) else {
            return Router::new();
        };
        let path = |version| format!("/grpc.reflection.{version}.ServerReflection/{{method}}");
        let router = Router::new().route_service(&path("v1"), v1);
        router.route_service(&path("v1alpha"), v1alpha)
    })
}

/// Answers a call before its deadline; a command that was not queued by then is not run.
async fn answer(app: Arc<App>, method: Arc<Method>, request: Request) -> Response {
    if !is_grpc(request.headers()) {
        let problem = Some(Problem::new(&kinds::UNSUPPORTED_MEDIA_TYPE));
        let refused = Problem::into_response;
        return method.endpoint.serve(app, request, problem, refused).await;
    }
    let clock = Arc::clone(app.clock());
    let deadline = deadline::of(request.headers(), clock.boot());
    let answering = method.answer(app, request);
    let Some(deadline) = deadline else {
        return answering.await;
    };
    tokio::select! {
        biased;
        () = clock.sleep_until(deadline) => {
            let text = "the deadline of the call has passed; repeat a command with the same idempotency-key";
            codec::refusal(Status::deadline_exceeded(text))
        }
        response = answering => response,
    }
}

/// Answers a call of a method that this listener does not have.
pub(super) fn no_such_method() -> Response {
    let text = "this listener has no such method; `grpc.reflection.v1` lists all that there are";
    let problem = Problem::detailed(&kinds::METHOD_NOT_ALLOWED, text);
    refused(status::refused(problem))
}

pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE);
    media.is_some_and(|media| media.as_bytes().starts_with(b"application/grpc"))
}
