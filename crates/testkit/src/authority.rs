//! A certificate authority for one test, with keys that are generated when the test runs. A
//! client that trusts [`Authority::pem`] trusts the certificates that it signed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// When the test runs.
    Now,
    /// It has expired (in 2021).
    Over,
}

/// A certificate authority with its key.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    key: Arc<KeyPair>,
    certificate: rcgen::Certificate,
}

impl Authority {
    /// Creates an authority with a new key.
    pub fn new() -> Result<Self> {
        let mut params = params("an authority of a test", Validity::Now)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self(CertifiedIssuer::self_signed(
            params,
            KeyPair::generate()?,
        )?))
    }

    /// Returns its own certificate as PEM, for clients that are to trust it.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Writes its own certificate into a folder, and returns the path of the file.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        let file = folder.join("authority.pem");
        std::fs::write(&file, self.pem())?;
        Ok(file)
    }

    /// Signs a certificate with a new key for the host or the user `name`.
    pub fn certify(&self, name: &str, validity: Validity) -> Result<Certificate> {
        let key = KeyPair::generate()?;
        let certificate = params(name, validity)?.signed_by(&key, &self.0)?;
        Ok(Certificate::of(key, certificate))
    }
}

impl Certificate {
    fn of(key: KeyPair, certificate: rcgen::Certificate) -> Self {
        Self {
            key: Arc::new(key),
            certificate,
        }
    }

    /// Creates a self-signed certificate of the host `host`.
    pub fn self_signed(host: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = params(host, Validity::Now)?.self_signed(&key)?;
        Ok(Self::of(key, certificate))
    }

    /// Returns the certificate in DER, as it is sent in a TLS handshake.
    pub fn der(&self) -> &[u8] {
        self.certificate.der()
    }

    /// Writes it and its key as `<name>.pem` and `<name>.key` into a folder, and returns the paths.
    pub fn write(&self, folder: &Path, name: &str) -> Result<[PathBuf; 2]> {
        let files = ["pem", "key"].map(|kind| folder.join(format!("{name}.{kind}")));
        std::fs::write(&files[0], self.certificate.pem())?;
        std::fs::write(&files[1], self.key.serialize_pem())?;
        Ok(files)
    }

    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>> {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.der().clone()], key)?;
        Ok(Arc::new(config))
    }
}

fn params(name: &str, validity: Validity) -> Result<CertificateParams> {
    let names = if name.contains(' ') {
        vec![]
    } else {
        vec![name.to_owned()]
    };
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, name);
    if validity == Validity::Over {
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    }
    Ok(params)
}
