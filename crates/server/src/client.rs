//! A client of one server, for commands and tools: one request at a time, HTTP/1.1 without TLS. Run it on
//! the server's own machine, or behind a tunnel.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::http::request::Builder;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::limits::{CLIENT_ANSWER_BYTES_MAX, CLIENT_WAIT_MS};

/// A server and the key to act with.
#[derive(Clone, Debug)]
pub struct Client {
    authority: String,
    key: String,
}

/// The answer of a server.
#[derive(Debug)]
pub struct Response {
    /// Its status.
    pub status: StatusCode,
    /// Its JSON; null if it is empty.
    pub body: Value,
}

/// Why there is no answer, or no success.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ClientError {
    #[error("--url {0}: give it as http://HOST:PORT")]
    Url(String),
    #[error("the server at {0} cannot be reached")]
    Unreachable(String, #[source] io::Error),
    #[error("{0} gave no answer in {wait} ms", wait = CLIENT_WAIT_MS)]
    Silent(String),
    #[error("{0} closed the connection without an answer")]
    Closed(String, #[source] Option<hyper::Error>),
    #[error("{0} did not answer in HTTP with a body of at most {most} bytes", most = CLIENT_ANSWER_BYTES_MAX)]
    Http(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{0} did not answer in JSON")]
    Json(String, #[source] serde_json::Error),
    #[error("{status}: {title}: {detail}", status = .0.as_u16(), title = .1, detail = .2)]
    Problem(StatusCode, String, String),
}

impl Client {
    /// Returns a client of `url`, such as `http://127.0.0.1:8080`; an empty key sends none.
    ///
    /// # Errors
    /// Fails when the URL is not of that form.
    pub fn new(url: &str, key: &str) -> Result<Self, ClientError> {
        let authority = url
            .strip_prefix("http://")
            .map(|rest| rest.trim_end_matches('/'))
            .filter(|rest| !rest.is_empty() && !rest.contains('/'))
            .ok_or_else(|| ClientError::Url(url.to_owned()))?;
        Ok(Self {
            authority: authority.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Returns a client of the same server with another key or session.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            authority: self.authority.clone(),
            key: key.to_owned(),
        }
    }

    /// Resolves the server's address.
    ///
    /// # Errors
    /// Fails when its name is unknown.
    pub async fn address(&self) -> Result<SocketAddr, ClientError> {
        let unreachable = |error| ClientError::Unreachable(self.authority.clone(), error);
        let mut found = tokio::net::lookup_host(&self.authority)
            .await
            .map_err(unreachable)?;
        let found = found.next().ok_or(io::ErrorKind::NotFound.into());
        found.map_err(unreachable)
    }

    /// Sends one request and reads its JSON answer.
    ///
    /// # Errors
    /// Fails when the server cannot be reached, does not answer in time, or not in JSON.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response, ClientError> {
        self.exchange_in_time(self.request(method, path), body)
            .await
    }

    /// Sends a POST with an idempotency key: repeated with the same key, it has its effect once.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn post_once(
        &self,
        path: &str,
        body: &Value,
        key: &str,
    ) -> Result<Response, ClientError> {
        let request = self.request(Method::POST, path);
        let request = request.header("idempotency-key", key);
        self.exchange_in_time(request, Some(body)).await
    }

    fn request(&self, method: Method, path: &str) -> Builder {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.authority)
            .header("content-type", "application/json");
        if self.key.is_empty() {
            return request;
        }
        request.header("authorization", format!("Bearer {}", self.key))
    }

    async fn exchange_in_time(
        &self,
        request: Builder,
        body: Option<&Value>,
    ) -> Result<Response, ClientError> {
        let wait = Duration::from_millis(CLIENT_WAIT_MS);
        let answer = tokio::time::timeout(wait, self.exchange(request, body)).await;
        answer.unwrap_or_else(|_| Err(ClientError::Silent(self.authority.clone())))
    }

    async fn exchange(
        &self,
        request: Builder,
        body: Option<&Value>,
    ) -> Result<Response, ClientError> {
        let server = || self.authority.clone();
        let stream = TcpStream::connect(&self.authority).await;
        let stream = stream.map_err(|error| ClientError::Unreachable(server(), error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| ClientError::Closed(server(), Some(error)))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let http = |error| ClientError::Http(server(), error);
        let request = request.body(Full::new(Bytes::from(body)));
        let request = request.map_err(|error| http(error.into()))?;
        let answer = async {
            let response = sender.send_request(request).await;
            let response = response.map_err(|error| http(error.into()))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), CLIENT_ANSWER_BYTES_MAX);
            let body = body.collect().await.map_err(http)?.to_bytes();
            let body = if body.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&body).map_err(|e| ClientError::Json(server(), e))?
            };
            Ok(Response { status, body })
        };
        // The connection's own future moves the bytes; it ends with the answer.
        tokio::select! {
            answer = answer => answer,
            ended = connection => Err(ClientError::Closed(server(), ended.err())),
        }
    }
}

impl Response {
    /// Returns the body, if the status is a success.
    ///
    /// # Errors
    /// Fails with the title and the detail of the server's problem.
    pub fn into_success(self) -> Result<Value, ClientError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let text = |name: &str| self.body.get(name).and_then(Value::as_str);
        let [title, detail] =
            ["title", "detail"].map(|name| text(name).unwrap_or_default().to_owned());
        Err(ClientError::Problem(self.status, title, detail))
    }
}
