//! Certificates and keys in PEM, from files.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why a file gives no certificate or key. Shows its path, never its content.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FileError {
    #[error("{0} cannot be read: {1}")]
    Read(String, std::io::Error),
    #[error("{0} holds no {1} in PEM")]
    Missing(String, &'static str),
    #[error("{0} is damaged: {1}")]
    Damaged(String, String),
    #[error("the certificate and the key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    #[error("this system has no root certificates: install ca-certificates, or name a file")]
    NoRoots,
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    std::fs::read(path).map_err(|error| FileError::Read(path.display().to_string(), error))
}

/// Parses the certificates of a file, at least one.
pub(crate) fn chain(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let all = all.map_err(|error| damaged(path, "certificate", &error))?;
    if all.is_empty() {
        return Err(FileError::Missing(
            path.display().to_string(),
            "certificate",
        ));
    }
    Ok(all)
}

/// Parses the first private key of a file.
pub(crate) fn key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, FileError> {
    let what = "private key (one without a passphrase)";
    PrivateKeyDer::from_pem_slice(text).map_err(|error| damaged(path, what, &error))
}

fn damaged(path: &Path, what: &'static str, error: &pem::Error) -> FileError {
    let path = path.display().to_string();
    if matches!(error, pem::Error::NoItemsFound) {
        return FileError::Missing(path, what);
    }
    FileError::Damaged(path, error.to_string())
}

/// Reads the authorities of a file.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path, &read(path)?)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// Loads the authorities that this system trusts.
#[cfg(feature = "postgres")]
pub(crate) fn system_authorities() -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    let (added, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        return Err(FileError::NoRoots);
    }
    Ok(roots)
}
