//! What happens around every handler: request id, admission, rate limits, the problem of a refusal,
//! headers that every answer has, counters, and the access log. One plain function, no layers: a layer
//! would box one more future per request.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tracing::Instrument;

use super::api_request::ApiRequest;
use super::app::App;
use super::coding::{self, Coding};
use super::problem::{Handled, Problem};
use super::request_id::REQUEST_ID;
use super::route::{Route, Verb};
use super::served::Served;
use super::trace::Trace;
use super::{origin, rates};

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A handler of any type. What is around it is compiled once for all, and its future is no larger than its own.
type Handler = Arc<dyn Fn(ApiRequest) -> BoxFuture<'static, Handled> + Send + Sync>;

/// A route and its handler, called over HTTP and gRPC.
#[derive(Clone)]
pub(super) struct Endpoint {
    route: Route,
    /// The route's place in the table.
    at: usize,
    handler: Handler,
}

impl Endpoint {
    pub(super) fn new<F, Fut>(route: Route, at: usize, handler: F) -> Self
    where
        F: Fn(ApiRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |request| handler(request).boxed());
        Self { route, at, handler }
    }

    /// Serves one request, or refuses it for what was wrong with the gRPC call that it was made of. `refused` writes
    /// a refusal.
    pub(super) async fn serve(
        &self,
        app: Arc<App>,
        request: Request,
        refusal: Option<Problem>,
        refused: fn(Problem) -> Response,
    ) -> Response {
        let route = self.route;
        let began = app.clock().boot();
        let (parts, body) = request.into_parts();
        let request_id = app.request_ids.of(&parts.headers);
        let trace = Trace::begin(route, &parts.headers, &request_id);
        let uri = parts.uri.clone();
        let origin = origin::to_answer(&app.settings, &parts.headers);
        // Answers to commands may carry secrets: coded, their length would tell of them.
        let coding = (route.verb == Verb::Get).then(|| Coding::accepted(&parts.headers));
        let admitted = app.admit(route, &parts);
        let counted = app.count(route, &admitted, &parts, began).await;
        let admitted = match counted.iter().flatten().find_map(rates::refusal) {
            Some(too_often) => Err(too_often),
            None => app.admit_new_key(route, &parts, admitted).await,
        };
        let outcome = match (admitted, refusal) {
            (Ok(caller), None) => {
                self.handle(ApiRequest {
                    app: Arc::clone(&app),
                    route,
                    caller,
                    request_id: Arc::clone(&request_id),
                    parts,
                    body,
                })
                .instrument(trace.span.clone())
                .await
            }
            (Err(problem), _) | (Ok(_), Some(problem)) => Err(problem),
        };
        let code = outcome.as_ref().err().map_or("", Problem::code);
        let mut response = outcome.unwrap_or_else(refused);
        if let Some(coding) = coding {
            response = coding::of_answer(coding, response).await;
        }
        let headers = response.headers_mut();
        // Request ids are plain ASCII, so this never fails.
        if let Ok(id) = HeaderValue::from_str(&request_id) {
            headers.insert(REQUEST_ID, id);
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
        for counted in counted.iter().flatten() {
            rates::tell(headers, counted);
        }
        if !app.settings.allowed_origins.is_empty() {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = origin {
            origin::allow(headers, origin);
        }
        let status = response.status();
        let now = app.clock().boot();
        let took = now.since(began);
        let served = Served {
            route,
            path: uri.path(),
            status,
            code,
            request_id: &request_id,
            trace,
            took,
        };
        if let Some(metrics) = app.metrics.route(self.at) {
            metrics.answered(status, took);
            served.end(&metrics.slow, now);
        }
        response
    }

    /// Runs the handler. Answers if it panics: its connection and the other requests on it go on.
    async fn handle(&self, request: ApiRequest) -> Handled {
        let request_id = Arc::clone(&request.request_id);
        let handling = AssertUnwindSafe((self.handler)(request));
        handling.catch_unwind().await.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            tracing::error!(
                method = self.route.verb.as_str(),
                route = self.route.path,
                request_id = &*request_id,
                panic = text.unwrap_or("without a text"),
                "a handler panicked"
            );
            Err(Problem::unknown_outcome())
        })
    }
}

impl axum::handler::Handler<(), Arc<App>> for Endpoint {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, app: Arc<App>) -> Self::Future {
        async move { self.serve(app, request, None, Problem::into_response).await }.boxed()
    }
}
