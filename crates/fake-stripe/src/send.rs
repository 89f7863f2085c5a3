//! One notice over one connection: HTTP/1.1 by hand, since nothing of the answer but its status
//! matters.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::limits::{ANSWER_BYTES_MAX, ANSWER_WAIT};

/// The address and path that notices are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    address: SocketAddr,
    path: String,
}

impl Endpoint {
    /// Parses a URL such as `http://127.0.0.1:80/v1/webhooks/stripe`, on loopback only.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let why =
            || format!("`{url}`: notices go to http://, an address with its port, and a path");
        let rest = url.strip_prefix("http://").with_context(why)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let address: SocketAddr = authority.parse().with_context(why)?;
        anyhow::ensure!(
            address.ip().is_loopback(),
            "`{url}`: notices of a test stay on this machine"
        );
        Ok(Self {
            address,
            path: format!("/{path}"),
        })
    }

    /// Builds the endpoint of a server that listens on this address; one that listens on all
    /// addresses (`0.0.0.0`, `::`) is called by loopback.
    pub(super) fn own(server: SocketAddr, path: &str) -> Self {
        let ip = match server.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        Self {
            address: SocketAddr::new(ip, server.port()),
            path: path.to_owned(),
        }
    }
}

/// Sends a body and returns the status of the answer; `None` without one in [`ANSWER_WAIT`].
pub(super) async fn send(endpoint: &Endpoint, body: &str, signature: &str) -> Option<u16> {
    let exchange = exchange(endpoint, body, signature);
    tokio::time::timeout(ANSWER_WAIT, exchange).await.ok()?.ok()
}

async fn exchange(endpoint: &Endpoint, body: &str, signature: &str) -> Result<u16> {
    let mut stream = TcpStream::connect(endpoint.address).await?;
    let request = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json; charset=utf-8\r\n\
         Content-Length: {}\r\nStripe-Signature: {signature}\r\nConnection: close\r\n\r\n{body}",
        endpoint.path,
        endpoint.address,
        body.len(),
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let mut limited = stream.take(u64::try_from(ANSWER_BYTES_MAX)?);
    limited.read_to_end(&mut answer).await?;
    let text = String::from_utf8_lossy(&answer);
    let status = text.split_whitespace().nth(1).context("no status")?;
    Ok(status.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_every_address_is_asked_by_the_machines_own() {
        let own = |address: &str| {
            Endpoint::own(address.parse().unwrap(), "/v1")
                .address
                .to_string()
        };
        assert_eq!(own("0.0.0.0:80"), "127.0.0.1:80");
        assert_eq!(own("[::]:80"), "[::1]:80");
        assert_eq!(own("192.0.2.7:80"), "192.0.2.7:80");
    }

    #[test]
    fn notices_stay_on_this_machine() {
        let endpoint = Endpoint::parse("http://127.0.0.1:8080/v1/webhooks/stripe").unwrap();
        assert_eq!(endpoint.path, "/v1/webhooks/stripe");
        assert_eq!(Endpoint::parse("http://[::1]:1").unwrap().path, "/");
        for url in [
            "https://127.0.0.1:1/",
            "http://192.0.2.1:80/",
            "http://example.org/",
            "127.0.0.1:80",
        ] {
            assert!(Endpoint::parse(url).is_err(), "{url}");
        }
    }
}
