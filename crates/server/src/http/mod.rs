//! Every HTTP route (api.md 3 and 7): each module of handlers adds its own to one table, of which the router and the
//! API description are made. Handlers read > ask the engine > answer; whether a caller may touch a thing, and
//! everything about units, is decided below this crate.

mod operation;
mod refusals;
mod route;
mod shapes;
mod table;

mod api_request;
mod app;
mod endpoint;

mod auth;
mod origin;
mod rates;
mod request_id;

mod conflicts;
mod kinds;
mod problem;
mod problems_page;

mod answer;
mod coding;
mod conditional;
mod headers;
mod json;
mod query;
mod response;
mod trace;
mod units;

mod event_body;
mod events;
mod policy;

mod rendered;
mod seats;

mod feed;
mod frames;
mod polling;
mod streams;

mod address_holds;
mod bookings;
mod holds;
mod payment_notices;
mod payments;
mod test_payments;
mod webhooks;

mod keys;
mod leases;
mod lists;
mod served;
mod sessions;
mod staff;

mod grpc;

mod bundle;
mod files;
mod metrics;
mod openapi;
mod pages;
mod prometheus;
mod system;

use crate::accept::ConnectionCounts;
use std::sync::Arc;

use axum::Router;
use soldonce_engine::Engine;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::app::App;
use self::route::Route;
use self::table::{FALLBACKS, Table};
use crate::settings::ServerSettings;

pub use self::table::AdminRoutes;

/// The routers of a server.
#[derive(Debug)]
pub struct Routers {
    /// The API, the feed and the pages; all of it when there is no admin router.
    pub public: Router,
    /// Every route, with those for admins and the metrics, if they were asked for apart.
    pub admin: Option<Router>,
    /// The counters of connections in the metrics, for the listeners to count with.
    pub connections: ConnectionCounts,
    /// Commands that go on though their callers hung up: to be waited for at the end.
    pub commands: TaskTracker,
}

/// A line of the route table, for tests and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteInfo {
    /// `GET`, `POST`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// The path template, such as `/v1/events/{event}`.
    pub path: &'static str,
    /// Who is let in: `anyone`, `new_shopper`, `look`, `buy`, `sell`, `lease`, `staff`, `admin`.
    pub admission: &'static str,
}

/// Builds the routers of a server over `engine`. Feeds end at `shutdown`. The sweeper is not
/// started: see [`run`](crate::run).
pub fn routers(
    engine: Engine,
    settings: ServerSettings,
    admin_routes: AdminRoutes,
    shutdown: CancellationToken,
) -> Routers {
    let mut table = Table::new(admin_routes);
    fill(&mut table);
    if settings.test_payments.is_some() {
        test_payments::demo_routes(&mut table);
    }
    let routes: Vec<Route> = table.routes.iter().copied().chain(FALLBACKS).collect();
    let app = Arc::new(App::new(engine, settings, shutdown, &routes));
    let (public, admin) = table.finish(&app);
    Routers {
        public,
        admin,
        connections: app.connections.clone(),
        commands: app.commands.clone(),
    }
}

/// Returns the description of the API: OpenAPI, as JSON for people to read too.
pub fn openapi() -> String {
    let mut table = Table::new(AdminRoutes::Public);
    fill(&mut table);
    openapi::document(&table.operations)
}

/// Lists every route of a server.
pub fn route_table() -> Vec<RouteInfo> {
    let mut table = Table::new(AdminRoutes::Public);
    fill(&mut table);
    let info = |route: &Route| RouteInfo {
        method: route.verb.as_str(),
        path: route.path,
        admission: route.admission.as_str(),
    };
    table.routes.iter().map(info).collect()
}

fn fill(table: &mut Table) {
    events::routes(table);
    seats::routes(table);
    feed::routes(table);
    polling::routes(table);
    holds::routes(table);
    bookings::routes(table);
    payments::routes(table);
    test_payments::routes(table);
    lists::routes(table);
    staff::routes(table);
    leases::routes(table);
    sessions::routes(table);
    keys::routes(table);
    payment_notices::routes(table);
    webhooks::routes(table);
    pages::routes(table);
    problems_page::routes(table);
    openapi::routes(table);
    system::routes(table);
}
