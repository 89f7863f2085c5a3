//! The certificate of a server, from two files that may change while it serves.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use crate::{FileError, files, provider};

/// The TLS acceptor of a server, with a certificate that can be reloaded.
#[derive(Clone)]
pub struct Listener {
    files: Arc<Files>,
    shown: Arc<Current>,
    acceptor: TlsAcceptor,
}

/// The result of reading the files again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// Connections from now on are shown another certificate.
    Changed,
    /// It is the one that is shown already.
    Same,
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// The present certificate.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl Listener {
    /// Reads the certificate with its chain, and its key, both in PEM.
    ///
    /// # Errors
    /// Names the file and what is wrong with it; also when the key is that of another certificate.
    pub fn load(certificate: PathBuf, key: PathBuf) -> Result<Self, FileError> {
        let files = Files { certificate, key };
        let shown = Arc::new(Current(RwLock::new(Arc::new(files.load()?))));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&shown) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            files: Arc::new(files),
            shown,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }

    /// Reads the files again. Connections that are open keep what they have.
    ///
    /// # Errors
    /// As [`Listener::load`]; the certificate stays as it was.
    pub fn reload(&self) -> Result<Reloaded, FileError> {
        let found = Arc::new(self.files.load()?);
        let mut shown = self.shown.0.write().unwrap_or_else(PoisonError::into_inner);
        if shown.cert == found.cert {
            return Ok(Reloaded::Same);
        }
        *shown = found;
        Ok(Reloaded::Changed)
    }

    /// Returns the acceptor that makes the handshakes.
    pub fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Listener").field(&self.files).finish()
    }
}

impl Files {
    fn load(&self) -> Result<CertifiedKey, FileError> {
        let Self { certificate, key } = self;
        let chain = files::chain(certificate, &files::read(certificate)?)?;
        let key = files::key(key, &files::read(key)?)?;
        Ok(CertifiedKey::from_der(chain, key, &provider())?)
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let shown = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&shown))
    }
}
