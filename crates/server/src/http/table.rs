//! Puts routes and their handlers into a router, and answers what no route takes.

use std::sync::Arc;

use axum::Router;
use axum::routing::on;

use super::api_request::ApiRequest;
use super::app::App;
use super::endpoint::Endpoint;
use super::grpc::{self, Method};
use super::operation::{Operation, Tag};
use super::problem::{Handled, Problem};
use super::route::{Admission, Route, Verb};
use super::{kinds, origin};

/// Where the routes for admins and the metrics are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminRoutes {
    /// With everything else.
    Public,
    /// On a second router alone, which has everything else too: an admin client needs one address.
    Apart,
}

/// What no route takes: no such path, and no such method.
pub(super) const FALLBACKS: [Route; 2] = [
    fallback_route("no such path"),
    fallback_route("no such method"),
];

const fn fallback_route(path: &'static str) -> Route {
    Route::new(Verb::Any, path, Admission::Anyone)
}

async fn no_such_path(req: ApiRequest) -> Handled {
    if grpc::is_grpc(&req.parts.headers) {
        return Ok(grpc::no_such_method());
    }
    Err(Problem::new(&kinds::NOT_FOUND))
}

async fn no_such_method(req: ApiRequest) -> Handled {
    if let Some(response) = origin::preflight(&req.app.settings, &req.parts) {
        return Ok(response);
    }
    Err(Problem::new(&kinds::METHOD_NOT_ALLOWED))
}

/// Routes and the routers made of them.
pub(super) struct Table {
    public: Router<Arc<App>>,
    /// Every route, on a listener of its own; None when the public one has them all.
    admin: Option<Router<Arc<App>>>,
    pub(super) routes: Vec<Route>,
    /// What the API's description is made of.
    pub(super) operations: Vec<Operation>,
    tag: Tag,
    /// The endpoint that tells whether the server is ready.
    ready: Option<Endpoint>,
}

impl Table {
    pub(super) fn new(admin_routes: AdminRoutes) -> Self {
        Self {
            public: Router::new(),
            admin: (admin_routes == AdminRoutes::Apart).then(Router::new),
            routes: Vec::new(),
            operations: Vec::new(),
            tag: Tag::System,
            ready: None,
        }
    }

    /// Sets the chapter of the operations that follow.
    pub(super) const fn tag(&mut self, tag: Tag) {
        self.tag = tag;
    }

    /// Serves an operation with its handler, as a route and as a method of gRPC.
    pub(super) fn add<F, Fut>(&mut self, operation: Operation, handler: F)
    where
        F: Fn(ApiRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        let route = operation.route;
        let endpoint = self.push(route, handler);
        if operation.id == "readyz" {
            self.ready = Some(endpoint.clone());
        }
        if let Some(method) = Method::of(&operation, endpoint).map(Arc::new) {
            self.mount(route, |router| grpc::add(router, &method));
        }
        let tag = self.tag;
        self.operations.push(Operation { tag, ..operation });
    }

    /// Serves a route that is no part of the API.
    pub(super) fn push<F, Fut>(&mut self, route: Route, handler: F) -> Endpoint
    where
        F: Fn(ApiRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        let endpoint = Endpoint::new(route, self.routes.len(), handler);
        let method = on(route.verb.filter(), endpoint.clone());
        self.mount(route, |router| router.route(route.path, method.clone()));
        self.routes.push(route);
        endpoint
    }

    /// Adds what answers a route to the routers that have it.
    fn mount(&mut self, route: Route, add: impl Fn(Router<Arc<App>>) -> Router<Arc<App>>) {
        if self.admin.is_none() || !route.is_for_operators() {
            self.public = add(std::mem::take(&mut self.public));
        }
        self.admin = self.admin.take().map(add);
    }

    /// Builds the routers, public and admin. The fallback routes are the last among the counters.
    pub(super) fn finish(self, app: &Arc<App>) -> (Router, Option<Router>) {
        let ([path_route, method_route], fallbacks) = (FALLBACKS, self.routes.len());
        let no_path = Endpoint::new(path_route, fallbacks, no_such_path);
        let no_method = Endpoint::new(method_route, fallbacks.saturating_add(1), no_such_method);
        let finished = |mut router: Router<Arc<App>>| -> Router {
            if let Some(ready) = &self.ready {
                router = grpc::add_services(router, app, ready.clone());
            }
            let router = router.fallback(no_path.clone());
            let router = router.method_not_allowed_fallback(no_method.clone());
            router.with_state(Arc::clone(app))
        };
        (finished(self.public), self.admin.map(finished))
    }
}
