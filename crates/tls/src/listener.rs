//! The certificate of a server, from two files that may change while it serves.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, RootCertStore, ServerConfig};
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

    /// Returns when the present certificate ends, seconds since 1970; `None` if it does not say so.
    pub fn ends_at(&self) -> Option<u64> {
        self.shown.read().cert.first().and_then(end)
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

/// Finds when a certificate ends: the refusal of one that is over, as all are at the end of time, names it.
fn end(certificate: &CertificateDer<'_>) -> Option<u64> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let (roots, last) = (RootCertStore::empty(), Duration::from_secs(u64::MAX));
    let last = UnixTime::since_unix_epoch(last);
    let all = provider().signature_verification_algorithms.all;
    match verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], last, all) {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(not_after.as_secs())
        }
        Ok(()) | Err(_) => None,
    }
}

impl Current {
    fn read(&self) -> RwLockReadGuard<'_, Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.read()))
    }
}
