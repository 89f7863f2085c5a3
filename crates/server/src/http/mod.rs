//! Every HTTP route (api.md 3 and 7) in one table. Handlers read > ask the engine > answer; whether
//! a caller may touch a thing, and everything about units, is decided below this crate.

mod route;
mod table;

mod app;
mod asked;
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
mod json;
mod query;
mod units;

mod event_body;
mod events;
mod policy;

mod rendered;
mod seats;

mod feed;
mod streams;

mod bookings;
mod desk;
mod hoarding;
mod holds;
mod payments;
mod webhook_endpoints;
mod webhooks;

mod keys;
mod lists;
mod sessions;
mod staff;

mod classic;
mod gathered;
mod metrics;
mod openapi;
mod pages;
mod system;

use crate::accept::ConnectionCounts;
use std::sync::Arc;

use axum::Router;
use soldonce_engine::Engine;
use tokio_util::sync::CancellationToken;

use self::app::App;
use self::route::{Admission, BodySize, METRICS, Route, Verb};
use self::table::{FALLBACKS, Table};
use crate::settings::ServerSettings;

pub use self::openapi::document as openapi;

/// The routers of a server.
#[derive(Debug)]
pub struct Routers {
    /// The API, the feed and the pages; all of it when there is no admin router.
    pub public: Router,
    /// Every route, with those for staff and the metrics, if they were asked for apart.
    pub admin: Option<Router>,
    /// What the metrics tell of connections, for the listeners to count.
    pub connections: ConnectionCounts,
}

/// A line of the route table, for tests and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteInfo {
    /// `GET`, `POST`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// The path template, such as `/v1/events/{event}`.
    pub path: &'static str,
    /// Who is let in: `anyone`, `new_shopper`, `look`, `buy`, `sell`, `admin`.
    pub admission: &'static str,
}

/// Where the routes for staff and the metrics are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminRoutes {
    /// With everything else.
    Public,
    /// On a second router alone, which has everything else too: an admin client needs one address.
    Apart,
}

/// The routers of a server over `engine`. Feeds end at `shutdown`. The sweeper is not started: see
/// [`run`](crate::run).
pub fn routers(
    engine: Engine,
    settings: ServerSettings,
    admin_routes: AdminRoutes,
    shutdown: CancellationToken,
) -> Routers {
    let mut table = Table::new(admin_routes);
    fill(&mut table);
    if settings.demo_desk.is_some() {
        desk_of_demo(&mut table);
    }
    let routes: Vec<Route> = table.routes.iter().copied().chain(FALLBACKS).collect();
    let app = Arc::new(App::new(engine, settings, shutdown, &routes));
    let (public, admin) = table.finish(&app);
    Routers {
        public,
        admin,
        connections: app.connections.clone(),
    }
}

/// Every route of a server.
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
    events_and_seats(table);
    holds_and_bookings(table);
    staff_and_keys(table);
    webhooks_out(table);
    pages_and_health(table);
}

fn events_and_seats(table: &mut Table) {
    use Admission::{Admin, Look};
    table.add(Verb::Get, "/v1/events", Look, events::list);
    table.add_sized("/v1/events", Admin, BodySize::Chart, events::create);
    table.add(Verb::Get, "/v1/events/{event}", Look, events::read_one);
    table.add(Verb::Patch, "/v1/events/{event}", Admin, events::update);
    table.add(
        Verb::Post,
        "/v1/events/{event}/cancel",
        Admin,
        events::call_off,
    );
    table.add(Verb::Get, "/v1/events/{event}/chart", Look, seats::chart_of);
    table.add(Verb::Get, "/v1/events/{event}/seats", Look, seats::snapshot);
    table.add(Verb::Get, "/v1/events/{event}/feed", Look, feed::feed);
}

fn holds_and_bookings(table: &mut Table) {
    use Admission::{Admin, Buy, Sell};
    table.add(Verb::Post, "/v1/events/{event}/holds", Buy, holds::create);
    let staff = Admission::Staff;
    table.add(Verb::Get, "/v1/events/{event}/holds", staff, lists::holds);
    let path = "/v1/events/{event}/bookings";
    table.add(Verb::Get, path, staff, lists::bookings);
    table.add(Verb::Get, "/v1/holds", Buy, lists::own_holds);
    table.add(Verb::Get, "/v1/holds/{hold}", Buy, holds::read);
    table.add(Verb::Patch, "/v1/holds/{hold}", Buy, holds::change);
    table.add(Verb::Delete, "/v1/holds/{hold}", Buy, holds::release);
    table.add(Verb::Post, "/v1/holds/{hold}/extend", Buy, holds::extend);
    table.add(
        Verb::Post,
        "/v1/holds/{hold}/confirm",
        Buy,
        bookings::confirm,
    );
    table.add(
        Verb::Post,
        "/v1/holds/{hold}/checkout",
        Buy,
        payments::checkout,
    );
    table.add(
        Verb::Post,
        "/v1/holds/{hold}/abandon",
        Buy,
        payments::abandon,
    );
    table.add(Verb::Post, "/v1/holds/{hold}/revoke", Admin, holds::revoke);
    table.add(Verb::Post, "/v1/events/{event}/sales", Sell, bookings::sell);
    table.add(Verb::Get, "/v1/bookings", Buy, lists::own_bookings);
    table.add(Verb::Get, "/v1/bookings/{booking}", Buy, bookings::read);
    table.add(
        Verb::Post,
        "/v1/bookings/{booking}/cancel",
        Buy,
        bookings::cancel,
    );
    table.add(
        Verb::Post,
        "/v1/bookings/{booking}/refunds",
        Admin,
        payments::refund,
    );
    table.add(Verb::Post, "/v1/exchanges", Buy, payments::exchange);
    table.add(Verb::Get, "/v1/payments", Admission::Look, desk::payments);
    table.add_sized(
        "/v1/webhooks/stripe",
        Admission::Anyone,
        BodySize::Notice,
        webhooks::stripe,
    );
}

/// Routes that a shop never has: they are no part of the API, and stand in no description of it.
fn desk_of_demo(table: &mut Table) {
    use Admission::Buy;
    let charge = "/demo/payments/{intent}";
    table.add(Verb::Post, charge, Buy, desk::charge);
    let answer = "/demo/payments/{intent}/answer";
    table.add(Verb::Post, answer, Buy, desk::bank_answer);
}

fn staff_and_keys(table: &mut Table) {
    use Admission::{Admin, NewShopper};
    table.add(Verb::Post, "/v1/events/{event}/block", Admin, staff::block);
    table.add(
        Verb::Post,
        "/v1/events/{event}/unblock",
        Admin,
        staff::unblock,
    );
    let history = "/v1/events/{event}/units/{unit}/history";
    table.add(Verb::Get, history, Admin, staff::history);
    table.add(Verb::Post, "/v1/sessions", NewShopper, sessions::open);
    table.add(Verb::Post, "/v1/keys", Admin, keys::create);
    table.add(Verb::Get, "/v1/keys", Admin, keys::list);
    table.add(Verb::Delete, "/v1/keys/{key}", Admin, keys::revoke);
}

fn webhooks_out(table: &mut Table) {
    use Admission::Admin;
    let all = "/v1/webhook-endpoints";
    table.add(Verb::Post, all, Admin, webhook_endpoints::create);
    table.add(Verb::Get, all, Admin, webhook_endpoints::list);
    let one = "/v1/webhook-endpoints/{endpoint}";
    table.add(Verb::Delete, one, Admin, webhook_endpoints::delete);
    let rotate = "/v1/webhook-endpoints/{endpoint}/rotate";
    table.add(Verb::Post, rotate, Admin, webhook_endpoints::rotate);
    let disable = "/v1/webhook-endpoints/{endpoint}/disable";
    table.add(Verb::Post, disable, Admin, webhook_endpoints::disable);
    let enable = "/v1/webhook-endpoints/{endpoint}/enable";
    table.add(Verb::Post, enable, Admin, webhook_endpoints::enable);
    let log = "/v1/webhook-endpoints/{endpoint}/deliveries";
    table.add(Verb::Get, log, Admin, webhook_endpoints::deliveries);
    let resend = "/v1/webhook-endpoints/{endpoint}/deliveries/{message}/resend";
    table.add(Verb::Post, resend, Admin, webhook_endpoints::resend);
}

fn pages_and_health(table: &mut Table) {
    use Admission::Anyone;
    table.add(Verb::Get, "/", Anyone, pages::index);
    table.add(Verb::Get, "/assets/{*path}", Anyone, pages::asset);
    table.add(Verb::Get, "/problems/{code}", Anyone, problems_page::page);
    table.add(Verb::Get, "/docs", Anyone, pages::docs);
    table.add(Verb::Get, "/docs/", Anyone, pages::docs);
    table.add(Verb::Get, "/docs/{*path}", Anyone, pages::docs_part);
    table.add(Verb::Get, "/openapi.json", Anyone, openapi::serve);
    table.add(Verb::Get, "/healthz", Anyone, system::healthz);
    table.add(Verb::Get, "/readyz", Anyone, system::readyz);
    table.add(Verb::Get, METRICS, Anyone, system::metrics);
}
