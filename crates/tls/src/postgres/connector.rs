//! The handshake of the driver's connections, and the stream behind it.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};

use crate::binding;

/// TLS for the connections of one address.
#[derive(Clone)]
pub struct PgTls(TlsConnector);

impl PgTls {
    pub(super) fn new(config: ClientConfig) -> Self {
        Self(TlsConnector::from(Arc::new(config)))
    }
}

/// The TLS handshake of one connection, not begun yet.
pub struct PgHandshake {
    connector: TlsConnector,
    /// The name of the server. The driver names one for unencrypted connections too.
    host: Result<ServerName<'static>, InvalidDnsNameError>,
}

/// An encrypted connection.
#[derive(Debug)]
pub struct PgStream<S>(client::TlsStream<S>);

impl<S> MakeTlsConnect<S> for PgTls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = PgStream<S>;
    type TlsConnect = PgHandshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<PgHandshake, Infallible> {
        Ok(PgHandshake {
            connector: self.0.clone(),
            host: ServerName::try_from(host).map(|host| host.to_owned()),
        })
    }
}

impl<S> TlsConnect<S> for PgHandshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = PgStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<PgStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let host = self.host.map_err(io::Error::other)?;
            Ok(PgStream(self.connector.connect(host, stream).await?))
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for PgStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let shown = self.0.get_ref().1.peer_certificates();
        let own = shown.and_then(|chain| binding::end_point(chain.first()?));
        own.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for PgStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PgStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
