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
use self::route::Route;
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
    table.add("list_events", events::list);
    table.add("create_event", events::create);
    table.add("read_event", events::read_one);
    table.add("update_event", events::update);
    table.add("cancel_event", events::call_off);
    table.add("read_chart", seats::chart_of);
    table.add("read_seats", seats::snapshot);
    table.add("read_feed", feed::feed);
}

fn holds_and_bookings(table: &mut Table) {
    table.add("hold", holds::create);
    table.add("list_holds_of_event", lists::holds);
    table.add("list_bookings_of_event", lists::bookings);
    table.add("list_holds", lists::own_holds);
    table.add("read_hold", holds::read);
    table.add("change_hold", holds::change);
    table.add("release_hold", holds::release);
    table.add("extend_hold", holds::extend);
    table.add("confirm_hold", bookings::confirm);
    table.add("checkout_hold", payments::checkout);
    table.add("abandon_checkout", payments::abandon);
    table.add("revoke_hold", holds::revoke);
    table.add("sell", bookings::sell);
    table.add("list_bookings", lists::own_bookings);
    table.add("read_booking", bookings::read);
    table.add("cancel_booking", bookings::cancel);
    table.add("refund_booking", payments::refund);
    table.add("exchange_units", payments::exchange);
    table.add("read_payments", desk::payments);
    table.add("stripe_notice", webhooks::stripe);
}

/// Routes that a shop never has: they are no part of the API, and stand in no description of it.
fn desk_of_demo(table: &mut Table) {
    let charge = Route::of_demo("/demo/payments/{intent}");
    table.push(charge, desk::charge);
    let answer = Route::of_demo("/demo/payments/{intent}/answer");
    table.push(answer, desk::bank_answer);
}

fn staff_and_keys(table: &mut Table) {
    table.add("block", staff::block);
    table.add("unblock", staff::unblock);
    table.add("read_history", staff::history);
    table.add("open_session", sessions::open);
    table.add("create_key", keys::create);
    table.add("list_keys", keys::list);
    table.add("revoke_key", keys::revoke);
}

fn webhooks_out(table: &mut Table) {
    table.add("create_webhook_endpoint", webhook_endpoints::create);
    table.add("list_webhook_endpoints", webhook_endpoints::list);
    table.add("delete_webhook_endpoint", webhook_endpoints::delete);
    table.add("rotate_webhook_endpoint", webhook_endpoints::rotate);
    table.add("disable_webhook_endpoint", webhook_endpoints::disable);
    table.add("enable_webhook_endpoint", webhook_endpoints::enable);
    table.add("list_webhook_deliveries", webhook_endpoints::deliveries);
    table.add("resend_webhook_delivery", webhook_endpoints::resend);
}

fn pages_and_health(table: &mut Table) {
    table.add("page", pages::index);
    table.add("page_part", pages::asset);
    table.add("problem", problems_page::page);
    table.add("docs", pages::docs);
    table.add("docs_with_slash", pages::docs);
    table.add("docs_part", pages::docs_part);
    table.add("openapi", openapi::serve);
    table.add("healthz", system::healthz);
    table.add("readyz", system::readyz);
    table.add("metrics", system::metrics);
}
