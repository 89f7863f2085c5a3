//! TLS to the server. Without feature `tls` there is none, and an address that requires it is an
//! error.

use tokio_postgres::{Client, Config, Error, Socket};

/// An open connection, which its owner must poll.
pub(super) type Connection = tokio_postgres::Connection<Socket, Stream>;

#[cfg(feature = "tls")]
pub(super) use soldonce_tls::postgres::PgTls as Tls;
#[cfg(not(feature = "tls"))]
pub(super) use tokio_postgres::NoTls as Tls;

#[cfg(feature = "tls")]
type Stream = soldonce_tls::postgres::PgStream<Socket>;
#[cfg(not(feature = "tls"))]
type Stream = tokio_postgres::tls::NoTlsStream;

/// Parses an address. The error for a wrong one holds no part of it but file names.
#[cfg(feature = "tls")]
pub(super) fn read(url: &str) -> Result<(Config, Tls), String> {
    let read = soldonce_tls::postgres::read(url);
    read.map(|address| (address.config, address.tls))
        .map_err(|error| error.to_string())
}

#[cfg(not(feature = "tls"))]
pub(super) fn read(url: &str) -> Result<(Config, Tls), String> {
    let config: Config = url.parse().map_err(|error| format!("{error}"))?;
    if config.get_ssl_mode() == tokio_postgres::config::SslMode::Require {
        return Err("sslmode=require needs the feature `tls` of soldonce-lease".to_owned());
    }
    Ok((config, Tls))
}

/// Connects; with feature `tls` to the first of several hosts that answers, without it in order.
#[cfg(feature = "tls")]
pub(super) async fn connect(driver: &Config, tls: Tls) -> Result<(Client, Connection), Error> {
    soldonce_tls::postgres::connect(driver, &tls).await
}

#[cfg(not(feature = "tls"))]
pub(super) async fn connect(driver: &Config, tls: Tls) -> Result<(Client, Connection), Error> {
    driver.connect(tls).await
}
