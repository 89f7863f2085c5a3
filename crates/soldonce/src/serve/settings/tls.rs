//! Whether the server speaks HTTPS.

use std::path::PathBuf;

use soldonce_tls::Listener;

use super::file::SettingsFile;
use super::source::{Sourced, line};
use crate::serve::ServeArgs;
use crate::serve::tls::TlsArgs;

/// The certificate, if there is one, and where its files were named.
#[derive(Clone, Debug)]
pub(crate) struct TlsChoice {
    certificate: Sourced<Option<PathBuf>>,
    key: Sourced<Option<PathBuf>>,
    pub(crate) listener: Option<Listener>,
}

impl TlsChoice {
    /// # Errors
    /// As [`TlsArgs::load`].
    pub(super) fn gather(args: &ServeArgs, file: &mut SettingsFile) -> anyhow::Result<Self> {
        let first = |given: &Option<PathBuf>, file: Option<PathBuf>| {
            Sourced::first(given.clone().map(Some), file.map(Some), None)
        };
        let certificate = first(&args.tls.tls_cert, file.tls_cert.take());
        let key = first(&args.tls.tls_key, file.tls_key.take());
        let files = TlsArgs {
            tls_cert: certificate.value.clone(),
            tls_key: key.value.clone(),
        };
        Ok(Self {
            certificate,
            key,
            listener: files.load()?,
        })
    }

    /// How addresses of the server begin.
    pub(crate) fn scheme(&self) -> &'static str {
        match self.listener {
            Some(_) => "https",
            None => "http",
        }
    }

    /// A line for each.
    pub(super) fn describe(&self) -> String {
        let shown = |file: &Sourced<Option<PathBuf>>| {
            let path = file.value.as_ref().map(|path| path.display().to_string());
            path.unwrap_or_else(|| "none".to_owned())
        };
        let certificate = line(
            "tls_cert",
            shown(&self.certificate),
            self.certificate.source,
        );
        certificate + &line("tls_key", shown(&self.key), self.key.source)
    }
}
