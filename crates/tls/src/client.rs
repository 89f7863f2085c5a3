//! The files of a client whose driver makes the handshake itself and takes PEM.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{FileError, files};

/// The paths of a client's certificate files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// The authorities that must have certified the server; without it those of the system.
    pub authorities: Option<PathBuf>,
    /// The client's own certificate and its key.
    pub own: Option<[PathBuf; 2]>,
}

/// The content of the files, in PEM.
pub struct ClientPem {
    /// The content of [`ClientFiles::authorities`].
    pub authorities: Option<Vec<u8>>,
    /// The content of [`ClientFiles::own`].
    pub own: Option<[Vec<u8>; 2]>,
}

impl ClientFiles {
    /// Reads the files and checks that they hold certificates and a key.
    ///
    /// # Errors
    /// [`FileError`] names the file and what is wrong with it.
    pub fn read(&self) -> Result<ClientPem, FileError> {
        let authorities = self.authorities.as_deref().map(|file| {
            files::authorities(file)?;
            files::read(file)
        });
        let own = self.own.as_ref().map(own);
        Ok(ClientPem {
            authorities: authorities.transpose()?,
            own: own.transpose()?,
        })
    }
}

fn own([certificate, key]: &[PathBuf; 2]) -> Result<[Vec<u8>; 2], FileError> {
    let texts = [files::read(certificate)?, files::read(key)?];
    files::chain(certificate, &texts[0])?;
    files::key(key, &texts[1])?;
    Ok(texts)
}

/// Tells whether a handshake failed because the certificate of the other end proves nothing: no
/// further attempt will help.
pub fn is_certificate_refusal(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // The Redis driver wraps its causes in this type.
        let shared = error.downcast_ref::<Arc<dyn Error + Send + Sync>>();
        let error = shared.map_or(error, |shared| &**shared);
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::InvalidCertificate(_)) = inner {
            return true;
        }
        cause = error.source();
    }
    false
}
