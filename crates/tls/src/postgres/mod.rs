//! TLS to PostgreSQL: the parameters of libpq in a database's address, and the connector of the driver.
//!
//! | `sslmode` | encrypted | proven |
//! |---|---|---|
//! | `disable` | no | nothing |
//! | `prefer` (default) | if the server can | nothing |
//! | `require` | yes, or no connection | nothing; with `sslrootcert` as `verify-ca` |
//! | `verify-ca` | yes | an authority of `sslrootcert` certified the server |
//! | `verify-full` | yes | that, and its name; without `sslrootcert` by the system's authorities |

mod connector;
mod hosts;
mod parameters;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, SslNegotiation};

pub use self::connector::{PgHandshake, PgStream, PgTls};
pub use self::hosts::{Connected, connect};
use self::parameters::Parameters;
use crate::verify::Nameless;
use crate::{FileError, files, provider};

/// The protocol's name for servers that choose by it.
const ALPN: &[u8] = b"postgresql";

/// The parsed address of a database.
#[derive(Clone)]
pub struct Address {
    /// The address without its TLS parameters.
    pub config: Config,
    /// The TLS connector of its connections.
    pub tls: PgTls,
    /// What TLS protects the connection from.
    pub protection: Protection,
}

/// What TLS protects a connection from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Nothing: the connection is perhaps not encrypted.
    None,
    /// Readers. A server in the middle is not detected.
    Encrypted,
    /// Readers, and servers that no trusted authority certified.
    Verified,
}

/// Why an address cannot be used. Shows no part of it but the names of files.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum AddressError {
    #[error("{0}")]
    Driver(#[from] tokio_postgres::Error),
    #[error("sslmode is none of disable, prefer, require, verify-ca, verify-full")]
    Mode,
    #[error("sslrootcert proves nothing without sslmode=verify-full (or verify-ca, require)")]
    RootsUnused,
    #[error(
        "sslmode=verify-ca needs sslrootcert=FILE: the system's authorities certify anybody's server"
    )]
    RootsMissing,
    #[error("sslcert and sslkey go together")]
    HalfOfClient,
    #[error("{0}: {1}")]
    File(&'static str, #[source] FileError),
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// The authorities that must have certified the server, and whether its name is compared.
enum Proof {
    Nothing,
    Authority(RootCertStore),
    Name(RootCertStore),
}

/// Reads an address: `postgres://user@host/database?sslmode=verify-full`, or `host=.. sslmode=..`.
///
/// # Errors
/// [`AddressError`]: for a text that is no address, or files that cannot be used.
pub fn read(address: &str) -> Result<Address, AddressError> {
    let (rest, given) = parameters::take(address);
    let mut config: Config = rest.parse()?;
    let (mode, proof) = given.proof()?;
    config.ssl_mode(mode);
    let protection = match (mode, &proof) {
        (SslMode::Require, Proof::Nothing) => Protection::Encrypted,
        (SslMode::Require, Proof::Authority(_) | Proof::Name(_)) => Protection::Verified,
        (_, _) => Protection::None,
    };
    // Servers speak no TLS on these, and libpq asks for none.
    let hosts = config.get_hosts();
    if !hosts.is_empty() && hosts.iter().all(|host| matches!(host, Host::Unix(_))) {
        config.ssl_mode(SslMode::Disable);
    }
    let mut client = client(proof, given.client()?)?;
    if config.get_ssl_negotiation() == SslNegotiation::Direct {
        client.alpn_protocols = vec![ALPN.to_vec()];
    }
    Ok(Address {
        config,
        tls: PgTls::new(client),
        protection,
    })
}

impl Parameters {
    fn proof(&self) -> Result<(SslMode, Proof), AddressError> {
        let roots = self.root_certificate.as_deref();
        let mode = self.mode.as_deref().unwrap_or("prefer");
        Ok(match (mode, roots) {
            ("disable" | "prefer", Some(_)) => return Err(AddressError::RootsUnused),
            ("disable", None) => (SslMode::Disable, Proof::Nothing),
            ("prefer", None) => (SslMode::Prefer, Proof::Nothing),
            ("require", None) => (SslMode::Require, Proof::Nothing),
            ("verify-ca", None | Some("system")) => return Err(AddressError::RootsMissing),
            ("verify-full" | "require", Some("system")) | ("verify-full", None) => {
                let roots = files::system_authorities();
                let roots = roots.map_err(|error| AddressError::File("sslrootcert", error))?;
                (SslMode::Require, Proof::Name(roots))
            }
            ("verify-full", Some(file)) => (SslMode::Require, Proof::Name(authorities(file)?)),
            ("verify-ca" | "require", Some(file)) => {
                (SslMode::Require, Proof::Authority(authorities(file)?))
            }
            (_, _) => return Err(AddressError::Mode),
        })
    }

    /// Reads the client's own certificate and key, if the address names them.
    fn client(&self) -> Result<Option<Client>, AddressError> {
        let (certificate, key) = match (&self.certificate, &self.key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (PathBuf::from(certificate), PathBuf::from(key)),
            (Some(_), None) | (None, Some(_)) => return Err(AddressError::HalfOfClient),
        };
        let chain = files::read(&certificate).and_then(|text| files::chain(&certificate, &text));
        let key = files::read(&key).and_then(|text| files::key(&key, &text));
        Ok(Some((
            chain.map_err(|error| AddressError::File("sslcert", error))?,
            key.map_err(|error| AddressError::File("sslkey", error))?,
        )))
    }
}

type Client = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn authorities(file: &str) -> Result<RootCertStore, AddressError> {
    files::authorities(Path::new(file)).map_err(|error| AddressError::File("sslrootcert", error))
}

fn client(proof: Proof, own: Option<Client>) -> Result<ClientConfig, AddressError> {
    let provider = provider();
    let nameless = |roots| Nameless {
        roots,
        algorithms: provider.signature_verification_algorithms,
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match proof {
        Proof::Name(roots) => builder.with_root_certificates(roots),
        Proof::Authority(roots) => {
            let verifier = Arc::new(nameless(Some(roots)));
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        }
        Proof::Nothing => {
            let verifier = Arc::new(nameless(None));
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        }
    };
    Ok(match own {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
        None => builder.with_no_client_auth(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protection(address: &str) -> Result<Protection, String> {
        let read = read(address).map_err(|error| error.to_string());
        read.map(|address| address.protection)
    }

    #[test]
    fn a_mode_means_what_it_means_to_libpq() {
        let system = std::path::Path::new("/etc/ssl/certs").exists();
        for (parameters, expected) in [
            ("", Ok(Protection::None)),
            ("?sslmode=disable", Ok(Protection::None)),
            ("?sslmode=prefer", Ok(Protection::None)),
            ("?sslmode=require", Ok(Protection::Encrypted)),
            ("?sslmode=allow", Err("none of disable")),
            ("?sslmode=verify-ca", Err("needs sslrootcert")),
            ("?sslrootcert=/ca.pem", Err("without sslmode=verify-full")),
            (
                "?sslmode=verify-full&sslrootcert=/no/ca.pem",
                Err("/no/ca.pem cannot be read"),
            ),
            ("?sslmode=require&sslcert=/a.pem", Err("go together")),
        ] {
            let found = protection(&format!("postgres://app:word@db/main{parameters}"));
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected), "{parameters}"),
                Err(why) => {
                    let found = found.expect_err(parameters);
                    assert!(found.contains(why) && !found.contains("word"), "{found}");
                }
            }
        }
        if system {
            let full = protection("host=db sslmode=verify-full");
            assert!(full == Ok(Protection::Verified) || full.is_err_and(|e| e.contains("root")));
        }
    }

    #[test]
    fn a_local_socket_is_not_encrypted() {
        let local = read("host=/run/postgresql sslmode=require").unwrap();
        assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
    }
}
