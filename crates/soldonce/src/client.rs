//! One request to a running server, for commands that act through it. HTTP/1.1 without TLS: put the
//! command on the server's own machine, or behind a tunnel.

use std::time::Duration;

use anyhow::Context;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::limits::{CLIENT_ANSWER_BYTES_MAX, CLIENT_WAIT_MS};

/// A server and the key to act with.
pub(crate) struct Client {
    authority: String,
    key: String,
}

/// What a server answered.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Client {
    /// A client of `url`, such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// When the URL is not of that form.
    pub(crate) fn new(url: &str, key: &str) -> anyhow::Result<Self> {
        let authority = url
            .strip_prefix("http://")
            .map(|rest| rest.trim_end_matches('/'))
            .filter(|rest| !rest.is_empty() && !rest.contains('/'))
            .with_context(|| format!("--url {url}: give it as http://HOST:PORT"))?;
        Ok(Self {
            authority: authority.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Sends one request and reads its JSON answer; an empty answer is null.
    ///
    /// # Errors
    /// When the server cannot be reached, does not answer in time, or not in JSON.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Response> {
        let wait = Duration::from_millis(CLIENT_WAIT_MS);
        tokio::time::timeout(wait, self.exchange(method, path, body))
            .await
            .with_context(|| format!("{} gave no answer in {CLIENT_WAIT_MS} ms", self.authority))?
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Response> {
        let unreachable = || format!("the server at {} cannot be reached", self.authority);
        let stream = TcpStream::connect(&self.authority)
            .await
            .with_context(unreachable)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let bytes = body
            .map(serde_json::to_vec)
            .transpose()?
            .unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.authority)
            .header("content-type", "application/json");
        // Without a key the request has no caller.
        let request = if self.key.is_empty() {
            request
        } else {
            request.header("authorization", format!("Bearer {}", self.key))
        };
        let request = request.body(Full::new(Bytes::from(bytes)))?;
        let answer = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let limited =
                http_body_util::Limited::new(response.into_body(), CLIENT_ANSWER_BYTES_MAX);
            let body = limited
                .collect()
                .await
                .map_err(|e| anyhow::anyhow!(e))?
                .to_bytes();
            let body = if body.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&body)?
            };
            Ok::<_, anyhow::Error>(Response { status, body })
        };
        // The connection's own future moves the bytes; it ends with the answer.
        tokio::select! {
            answer = answer => answer,
            ended = connection => {
                ended.with_context(unreachable)?;
                anyhow::bail!("{} closed the connection without an answer", self.authority)
            }
        }
    }
}

impl Response {
    /// The body, if the status is a success.
    ///
    /// # Errors
    /// What the server said is wrong.
    pub(crate) fn into_success(self) -> anyhow::Result<Value> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let text = |name: &str| {
            self.body
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        anyhow::bail!(
            "{}: {}: {}",
            self.status.as_u16(),
            text("title"),
            text("detail")
        )
    }
}
