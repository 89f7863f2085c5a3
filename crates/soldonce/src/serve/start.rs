//! Opens the ledger and starts the server on it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use soldonce_engine::shield::Shield;
use soldonce_engine::webhook::{Sender, SystemLookup};
use soldonce_engine::{Engine, run_key_watch, run_shield_messages};
use soldonce_server::{CookieSecurity, Drained, Listeners, ServerSettings, TestPayments};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::admin_key::{NewAdminKey, admin_key};
use super::settings::{FreeSales, LimitSettings, Settings};
use super::signals::Signals;
use super::tls;
use crate::clear_text::ClearLink;

/// Files and sockets besides the connections: ledger, database, Redis, webhooks, the runtime.
const OTHER_DESCRIPTORS: u64 = 256;

/// A running server.
pub(crate) struct RunningServer {
    pub(crate) engine: Engine,
    pub(super) folder: Option<PathBuf>,
    /// The address on which it listens.
    pub(crate) address: SocketAddr,
    /// The address of its admin routes, if they have a listener of their own.
    pub(super) admin_address: Option<SocketAddr>,
    /// The admin key that was made at this start, if one was.
    pub(crate) new_admin_key: Option<NewAdminKey>,
    /// Ends everything when cancelled.
    pub(crate) shutdown: CancellationToken,
    /// The server and all other tasks that must end before the ledger closes.
    pub(crate) tasks: JoinSet<()>,
    pub(super) signals: Signals,
}

/// Opens the ledger and starts serving. `payments` is for the demo alone.
pub(crate) async fn start(
    settings: &Settings,
    payments: Option<Arc<dyn TestPayments>>,
) -> anyhow::Result<RunningServer> {
    let signals = Signals::catch(settings)?;
    settings.clear_links.iter().for_each(ClearLink::warn);
    let listener = listen("--listen", &settings.listen).await?;
    let admin_listener = match &settings.admin_listen {
        Some(address) => Some(listen("--admin-listen", address).await?),
        None => None,
    };
    let redis_shield = settings.shield.clone();
    let shield = redis_shield.clone().map(|shield| shield as Arc<dyn Shield>);
    let engine = settings.ledger.open_behind(shield).await?;
    let engine = paid(engine, settings);
    let sender = Sender::new(settings.webhooks, Arc::new(SystemLookup));
    let sender = sender.map_err(anyhow::Error::msg);
    let engine = engine.posted_by(sender.context("webhooks cannot be sent")?);
    let new_admin_key = admin_key(&engine, settings.admin_key.as_ref(), &settings.ledger).await?;
    let address = listener.local_addr()?;
    let admin_address = admin_listener.as_ref().map(TcpListener::local_addr);
    let cookie = cookie(settings, [Some(&listener), admin_listener.as_ref()]);
    let shutdown = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let server = ServerSettings {
        cookie,
        test_payments: payments,
        ..server_settings(settings)
    };
    let listeners = Listeners {
        public: listener,
        admin: admin_listener,
    };
    if let Some(tls) = settings.tls.clone() {
        tasks.spawn(tls::watch(tls, shutdown.clone())?);
    }
    if let Some(shield) = redis_shield {
        let messages = run_shield_messages(engine.clone(), shutdown.clone());
        let stop = shutdown.clone();
        tasks.spawn(async move {
            let greeted = stop.run_until_cancelled(shield.redis().greet());
            tokio::join!(messages, Box::pin(greeted));
        });
    }
    if settings.ledger.is_shared() {
        tasks.spawn(run_key_watch(engine.clone(), shutdown.clone()));
    }
    let (stop, shared) = (shutdown.clone(), engine.clone());
    let rates = settings.limits.shared.clone();
    tasks.spawn(async move {
        let greeted = async {
            if let Some(rates) = rates {
                Box::pin(stop.run_until_cancelled(rates.redis().greet())).await;
            }
        };
        let until_drained = soldonce_server::run(listeners, shared, server, stop.clone());
        let (drained, ()) = tokio::join!(until_drained, greeted);
        log_end(&drained);
    });
    Ok(RunningServer {
        engine,
        folder: settings.ledger.folder(),
        address,
        admin_address: admin_address.transpose()?,
        new_admin_key,
        shutdown,
        tasks,
        signals,
    })
}

/// Builds the server's settings as far as the operator's settings alone decide them.
fn server_settings(settings: &Settings) -> ServerSettings {
    let payments = settings.payments.as_ref();
    ServerSettings {
        shoppers: settings.shoppers,
        allowed_origins: settings.origins.clone(),
        stripe: payments.map(|place| place.notices.clone()),
        streams: settings.limits.streams,
        feed: settings.feed,
        rates: settings.limits.rates.clone(),
        leases: settings.leases.settings(settings.limits.leases),
        accept: settings.limits.accept,
        tls: settings.tls.clone(),
        keep_ended_events: settings.keep_ended_events,
        ..ServerSettings::default()
    }
}

fn log_end(drained: &Drained) {
    tracing::info!(
        finished = drained.finished,
        cut = drained.cut,
        panicked = drained.panicked,
        "all requests have ended"
    );
}

/// Sets how the engine is paid: by a provider, or not at all if shoppers need not pay.
fn paid(engine: Engine, settings: &Settings) -> Engine {
    let engine = match &settings.payments {
        Some(place) => engine.paid_by(place.stripe.clone()),
        None => engine,
    };
    match settings.free_sales {
        Some(FreeSales::On) => engine.with_free_sales(),
        Some(FreeSales::Off) | None => engine,
    }
}

/// Returns what the operator set; else secure, unless only this machine can connect, by HTTP: then a trusted
/// proxy on it says whether the request came by HTTPS.
fn cookie(settings: &Settings, listeners: [Option<&TcpListener>; 2]) -> CookieSecurity {
    let is_loopback = |listener: &TcpListener| {
        let address = listener.local_addr();
        address.is_ok_and(|address| address.ip().is_loopback())
    };
    let is_local = || listeners.into_iter().flatten().all(is_loopback);
    match settings.cookie {
        Some(word) => word,
        None if settings.tls.is_none() && is_local() => CookieSecurity::Forwarded,
        None => CookieSecurity::Secure,
    }
}

/// Raises the number of files and sockets that may be open to what the system allows: most shells and
/// services give 1,024, which is less than the connections alone.
pub(super) fn raise_descriptor_limit(limits: &LimitSettings) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tell_descriptors(limits, limit.maximum),
        Err(error) => {
            tracing::warn!(%error, "the limit of open files stays as it is");
            tell_descriptors(limits, limit.current);
        }
    }
}

/// Returns how many files and sockets a server must be able to open for as many connections.
pub(crate) fn descriptors_for(connections: usize) -> u64 {
    let connections = u64::try_from(connections).unwrap_or(u64::MAX);
    connections.saturating_add(OTHER_DESCRIPTORS)
}

/// Logs how many files and sockets may be open, and how many the connections need.
fn tell_descriptors(limits: &LimitSettings, may_be: Option<u64>) {
    let connections = limits.accept.connections_max;
    if connections == usize::MAX {
        tracing::info!("as many connections as there may be open files");
        return;
    }
    let needed = descriptors_for(connections);
    let open_files = may_be.unwrap_or(u64::MAX);
    if needed <= open_files {
        tracing::info!(
            open_files,
            connections,
            "open files suffice for the connections"
        );
    } else {
        tracing::warn!(
            open_files,
            connections,
            needed,
            "fewer connections than limit_connections can be open: raise the limit of open files (ulimit -n, \
             LimitNOFILE)"
        );
    }
}

async fn listen(flag: &str, address: &str) -> anyhow::Result<TcpListener> {
    soldonce_server::listen(address)
        .await
        .with_context(|| format!("{address} cannot be listened on; choose another with {flag}"))
}
