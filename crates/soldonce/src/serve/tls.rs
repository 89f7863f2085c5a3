//! The server's own certificate: read at the start, and again while it serves.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use soldonce_clock::{Clock, SystemClock};
use soldonce_tls::{Listener, Reloaded};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::limits::TLS_LOOK_MS;

/// The server's own certificate.
#[derive(Clone, Debug, Args)]
pub(crate) struct TlsArgs {
    /// Serve by HTTPS in place of HTTP, on all listeners, with this certificate and its chain in PEM. Read again
    /// every minute and on SIGHUP
    #[arg(long, env = "SOLDONCE_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of `--tls-cert`, in PEM
    #[arg(long, env = "SOLDONCE_TLS_KEY", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
}

impl TlsArgs {
    /// Reads the files, if they are given.
    ///
    /// # Errors
    /// Names the setting or the file, and what is wrong with it.
    pub(crate) fn load(&self) -> anyhow::Result<Option<Listener>> {
        match (&self.tls_cert, &self.tls_key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => {
                let loaded = Listener::load(certificate.clone(), key.clone());
                Ok(Some(loaded.context("tls_cert, tls_key")?))
            }
            (Some(_), None) => anyhow::bail!("tls_key: is missing; tls_cert needs it"),
            (None, Some(_)) => anyhow::bail!("tls_cert: is missing; tls_key needs it"),
        }
    }
}

/// Reads the certificate again on SIGHUP, and every minute without it: what renews it may not know this
/// process. Ends with `shutdown`.
pub(crate) fn watch(
    listener: Listener,
    shutdown: CancellationToken,
) -> std::io::Result<impl Future<Output = ()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let clock = Arc::new(SystemClock);
    Ok(async move {
        loop {
            let next = clock.boot().plus(Duration::from_millis(TLS_LOOK_MS));
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = hangup.recv() => {}
                () = clock.sleep_until(next) => {}
            }
            match listener.reload() {
                Ok(Reloaded::Same) => {}
                Ok(Reloaded::Changed) => {
                    tracing::info!("the certificate is another one from now on");
                }
                Err(error) => {
                    tracing::warn!(%error, "the certificate stays: what is in its files cannot be used");
                }
            }
        }
    })
}
