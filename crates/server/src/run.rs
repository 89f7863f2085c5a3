//! Runs a server from its first connection to its last answer.

use std::sync::Arc;

use soldonce_engine::{Engine, run_dropper, run_outbox, run_reconciler, run_sweeper, run_webhooks};
use tokio::net::TcpListener;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::accept::{AcceptSettings, Drained, serve};
use crate::http::{AdminRoutes, routers};
use crate::limits::COMMANDS_END_MS;
use crate::settings::ServerSettings;

/// Bound sockets to serve on.
#[derive(Debug)]
pub struct Listeners {
    /// The API, the feed and the pages.
    pub public: TcpListener,
    /// Every route; without it the public one has those for admins and the metrics too.
    pub admin: Option<TcpListener>,
}

/// Serves `engine` until `shutdown` is cancelled: feeds end, requests in flight are answered, the sweeper, the
/// outbox and the webhooks stop, the engine is closed. Then returns how the connections of all listeners
/// ended.
///
/// # Cancel safety
/// Dropping the future cuts every connection and leaves the engine open.
pub async fn run(
    listeners: Listeners,
    engine: Engine,
    settings: ServerSettings,
    shutdown: CancellationToken,
) -> Drained {
    let limits = settings.accept;
    let trusted_proxies = settings.rates.trusted_proxies.clone();
    let tls = settings.tls.clone();
    let admin_routes = match listeners.admin {
        Some(_) => AdminRoutes::Apart,
        None => AdminRoutes::Public,
    };
    let mut helpers = JoinSet::new();
    let helping = CancellationToken::new();
    helpers.spawn(run_sweeper(engine.clone(), helping.clone()));
    let keep = settings.keep_ended_events;
    helpers.spawn(run_dropper(engine.clone(), keep, helping.clone()));
    if engine.provider().is_some() {
        helpers.spawn(run_outbox(engine.clone(), helping.clone()));
        helpers.spawn(run_reconciler(engine.clone(), helping.clone()));
    }
    if engine.sender().is_some() {
        helpers.spawn(run_webhooks(engine.clone(), helping.clone()));
    }
    let routers = routers(engine.clone(), settings, admin_routes, shutdown.clone());
    let accept = AcceptSettings {
        limits,
        trusted_proxies,
        tls: tls.clone(),
        clock: Arc::clone(&engine.world().clock),
        counts: routers.connections,
    };
    let mut loops = JoinSet::new();
    loops.spawn(serve(
        listeners.public,
        routers.public,
        accept.clone(),
        shutdown.clone(),
    ));
    if let (Some(listener), Some(router)) = (listeners.admin, routers.admin) {
        loops.spawn(serve(listener, router, accept, shutdown.clone()));
    }
    let mut ended = Drained::default();
    let clock = Arc::clone(&engine.world().clock);
    let mut shutdown_began = None;
    // None of these ends before the shutdown, except by a panic: then all end, since a server that
    // writes down no expiry or refunds nothing any more must not look as if it were whole.
    while !loops.is_empty() {
        tokio::select! {
            Some(drained) = loops.join_next() => match drained {
                Ok(drained) => ended.add(drained),
                Err(error) => tracing::error!(%error, "an accept loop ended by a panic"),
            },
            Some(helped) = helpers.join_next() => note(helped),
            () = shutdown.cancelled(), if shutdown_began.is_none() => {}
        }
        shutdown.cancel();
        shutdown_began.get_or_insert_with(|| clock.boot());
    }
    routers.commands.close();
    let shutdown_began = shutdown_began.unwrap_or_else(|| clock.boot());
    let late = shutdown_began.plus_ms(COMMANDS_END_MS);
    tokio::select! {
        () = routers.commands.wait() => {}
        () = clock.sleep_until(late) => {
            let left = routers.commands.len();
            tracing::warn!(left, "commands of callers who hung up are cut off; what was stored of them is kept");
        }
    }
    helping.cancel();
    while let Some(helped) = helpers.join_next().await {
        note(helped);
    }
    engine.close().await;
    ended
}

fn note(helped: Result<(), JoinError>) {
    if let Err(error) = helped {
        tracing::error!(%error, "the sweeper, the outbox or the webhooks ended by a panic");
    }
}
