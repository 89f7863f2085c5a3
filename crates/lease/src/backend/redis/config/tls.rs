//! TLS to a server, in the types of the driver.

use std::path::PathBuf;

use crate::BackendError;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Tls {
    /// The authorities that must have certified the server; without it those of the system.
    pub(super) authorities: Option<PathBuf>,
    /// The client's own certificate and its key.
    pub(super) own: Option<[PathBuf; 2]>,
}

#[cfg(feature = "tls")]
impl Tls {
    /// Builds the driver's address of this server.
    pub(super) fn driver(
        &self,
        (host, port): (String, u16),
    ) -> Result<redis::ConnectionInfo, BackendError> {
        // The driver takes the cryptography provider of the process.
        soldonce_tls::choose_cryptography();
        let address = redis::ConnectionAddr::TcpTls {
            host,
            port,
            insecure: false,
            tls_params: None,
        };
        // The driver takes certificates only through a client.
        let client = redis::Client::build_with_tls(address, self.certificates()?);
        let client = client.map_err(|error| BackendError::Config(error.to_string()))?;
        Ok(client.get_connection_info().clone())
    }

    pub(super) fn certificates(&self) -> Result<redis::TlsCertificates, BackendError> {
        let files = soldonce_tls::ClientFiles {
            authorities: self.authorities.clone(),
            own: self.own.clone(),
        };
        let read = files.read();
        let read = read.map_err(|error| BackendError::Config(error.to_string()))?;
        let own = read
            .own
            .map(|[client_cert, client_key]| redis::ClientTlsConfig {
                client_cert,
                client_key,
            });
        Ok(redis::TlsCertificates {
            client_tls: own,
            root_cert: read.authorities,
        })
    }
}

#[cfg(not(feature = "tls"))]
impl Tls {
    /// Fails: TLS needs the feature, and there is no fallback to a connection without it.
    #[expect(clippy::unused_self, reason = "with the feature it reads the files")]
    pub(super) fn driver(&self, _: (String, u16)) -> Result<redis::ConnectionInfo, BackendError> {
        let why = "rediss:// (TLS) needs the feature `tls` of soldonce-lease";
        Err(BackendError::Config(why.to_owned()))
    }
}
