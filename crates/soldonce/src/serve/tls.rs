//! The server's own certificate: read at the start, and again while it serves.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use soldonce_clock::{Clock, SystemClock};
use soldonce_tls::{Listener, Reloaded};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::limits::{TLS_LOOK_MS, TLS_WARN_DAYS};

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

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
/// process. Warns of one that ends soon. Ends with `shutdown`.
pub(crate) fn watch(
    listener: Listener,
    shutdown: CancellationToken,
) -> std::io::Result<impl Future<Output = ()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let clock = Arc::new(SystemClock);
    Ok(async move {
        let mut told = None;
        loop {
            warn_of_end(&listener, clock.wall_ms(), &mut told);
            let next = clock.boot().plus_ms(TLS_LOOK_MS);
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

/// Warns of a certificate that ends soon or has ended, once for each number of days that are left, of which
/// `told` is the last.
fn warn_of_end(listener: &Listener, now_ms: i64, told: &mut Option<i64>) {
    let Some(end) = listener.ends_at() else {
        return;
    };
    let end = i64::try_from(end).unwrap_or(i64::MAX);
    let left = end.saturating_sub(now_ms / 1_000);
    let days_left = left.div_euclid(SECONDS_PER_DAY);
    let is_new = told.replace(days_left) != Some(days_left);
    if is_new && days_left < TLS_WARN_DAYS {
        let how = if left < 0 { "has ended" } else { "ends soon" };
        tracing::warn!(
            days_left,
            "the certificate {how}: put a renewed one into the files of tls_cert and tls_key"
        );
    }
}
