//! One request at a time to a server on this machine, for what comes before and after a load.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use axum::http::{Method, StatusCode};
use serde_json::Value;

use crate::limits::CLIENT_WAIT_MS;
use crate::load::Connection;

/// A server and the key to act with.
#[derive(Clone)]
pub(crate) struct Client {
    authority: String,
    key: String,
}

/// The answer of a server.
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

    /// The same server with another key or session.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self {
            authority: self.authority.clone(),
            key: key.to_owned(),
        }
    }

    /// The server's address.
    ///
    /// # Errors
    /// When its name cannot be resolved.
    pub(crate) async fn address(&self) -> anyhow::Result<SocketAddr> {
        let found = tokio::net::lookup_host(&self.authority).await;
        let unknown = || format!("--url: {} leads nowhere", self.authority);
        let mut found = found.with_context(unknown)?;
        found.next().with_context(unknown)
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
        tokio::time::timeout(wait, self.exchange(&method, path, body))
            .await
            .with_context(|| format!("{} gave no answer in {CLIENT_WAIT_MS} ms", self.authority))?
    }

    async fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Response> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let (host, length) = (&self.authority, body.len());
        let key = match self.key.as_str() {
            "" => String::new(),
            key => format!("authorization: Bearer {key}\r\n"),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\n{key}content-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        let mut connection = Connection::open(self.address().await?)
            .await
            .with_context(|| format!("the server at {host} cannot be reached"))?;
        let sent = connection.exchange(request.as_bytes()).await;
        sent.map_err(|error| anyhow!("{method} {path} at {host}: {error:?}"))?;
        let answer = connection.last().context("an answer was read")?;
        Ok(Response {
            status: StatusCode::from_u16(answer.status)?,
            body: match answer.body {
                [] => Value::Null,
                body => serde_json::from_slice(body)?,
            },
        })
    }
}

impl Response {
    /// The body, if the status is a success.
    ///
    /// # Errors
    /// The title and the detail of the server's problem.
    pub(crate) fn into_success(self) -> anyhow::Result<Value> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let text = |name: &str| self.body.get(name).and_then(Value::as_str);
        let [title, detail] = ["title", "detail"].map(|name| text(name).unwrap_or_default());
        bail!("{}: {title}: {detail}", self.status.as_u16())
    }
}
