//! Puts routes and their handlers into a router, and answers what no route takes.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};

use super::app::App;
use super::asked::Asked;
use super::endpoint::{endpoint, serve};
use super::kinds;
use super::origin;
use super::problem::{Handled, Problem};
use super::route::{Admission, BodySize, Route, Verb};

/// What no route takes: no such path, and no such method.
pub(super) const FALLBACKS: [Route; 2] = [
    fallback_route("no such path"),
    fallback_route("no such method"),
];

const fn fallback_route(path: &'static str) -> Route {
    Route {
        verb: Verb::Any,
        path,
        admission: Admission::Anyone,
        body: BodySize::Usual,
    }
}

async fn no_such_path(_: Asked) -> Handled {
    Err(Problem::new(&kinds::NOT_FOUND))
}

async fn no_such_method(asked: Asked) -> Handled {
    if let Some(response) = origin::preflight(&asked.app.settings, &asked.parts) {
        return Ok(response);
    }
    Err(Problem::new(&kinds::METHOD_NOT_ALLOWED))
}

/// Routes and the router made of them.
pub(super) struct Table {
    router: Router<Arc<App>>,
    pub(super) routes: Vec<Route>,
    /// Place of the first route among the counters.
    first: usize,
}

impl Table {
    pub(super) fn starting_at(first: usize) -> Self {
        Self {
            router: Router::new(),
            routes: Vec::new(),
            first,
        }
    }

    pub(super) fn add<F, Fut>(
        &mut self,
        verb: Verb,
        path: &'static str,
        admission: Admission,
        handler: F,
    ) where
        F: Fn(Asked) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        let route = Route {
            verb,
            path,
            admission,
            body: BodySize::Usual,
        };
        self.push(route, handler);
    }

    /// A POST whose body may carry a chart.
    pub(super) fn add_with_chart<F, Fut>(
        &mut self,
        path: &'static str,
        admission: Admission,
        handler: F,
    ) where
        F: Fn(Asked) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        let route = Route {
            verb: Verb::Post,
            path,
            admission,
            body: BodySize::Chart,
        };
        self.push(route, handler);
    }

    fn push<F, Fut>(&mut self, route: Route, handler: F)
    where
        F: Fn(Asked) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        let at = self.first.saturating_add(self.routes.len());
        let method = endpoint(route, at, handler);
        self.router = std::mem::take(&mut self.router).route(route.path, method);
        self.routes.push(route);
    }

    /// The router; `fallbacks` is the place of the fallback routes among the counters.
    pub(super) fn finish(self, app: &Arc<App>, fallbacks: usize) -> Router {
        let [path_route, method_route] = FALLBACKS;
        let no_path = move |State(app): State<Arc<App>>, request: Request| {
            serve(app, path_route, fallbacks, no_such_path, request)
        };
        let no_method = move |State(app): State<Arc<App>>, request: Request| {
            serve(
                app,
                method_route,
                fallbacks.saturating_add(1),
                no_such_method,
                request,
            )
        };
        self.router
            .fallback(no_path)
            .method_not_allowed_fallback(no_method)
            .with_state(Arc::clone(app))
    }
}
