//! A client of one server, for commands and tools: one request at a time, by HTTP or HTTPS.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hyper::{Method, StatusCode};
use reqwest::{RequestBuilder, Url, redirect};
use serde_json::Value;
use soldonce_tls::choose_cryptography;

use crate::limits::{CLIENT_ANSWER_BYTES_MAX, CLIENT_WAIT_MS};

/// A server and the key to act with.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    /// Without a path.
    base: Url,
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
    #[error("--url {0}: give it as http://HOST:PORT or https://HOST:PORT")]
    Url(String),
    #[error("the server at {0} cannot be reached")]
    Unreachable(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{0} gave no answer in {wait} ms", wait = CLIENT_WAIT_MS)]
    Silent(String),
    #[error("{0} did not answer in HTTP{1}")]
    Http(String, &'static str, #[source] reqwest::Error),
    #[error("{0} answered with more than {most} bytes", most = CLIENT_ANSWER_BYTES_MAX)]
    Long(String),
    #[error("{0} did not answer in JSON")]
    Json(String, #[source] serde_json::Error),
    #[error("{}", told(*.0, .1, .2))]
    Problem(StatusCode, String, String),
}

/// Tells a problem, which may have no detail.
fn told(status: StatusCode, title: &str, detail: &str) -> String {
    let colon = if detail.is_empty() { "" } else { ": " };
    format!("{}: {title}{colon}{detail}", status.as_u16())
}

impl Client {
    /// Returns a client of `url`, such as `http://127.0.0.1:8080`; an empty key sends none. Servers by HTTPS
    /// are verified by the system's authorities, or those of the file that `SSL_CERT_FILE` names.
    ///
    /// # Errors
    /// Fails when the URL is not of that form, or TLS cannot be set up.
    pub fn new(url: &str, key: &str) -> Result<Self, ClientError> {
        let wrong = || ClientError::Url(url.to_owned());
        let base: Url = url.parse().map_err(|_| wrong())?;
        let is_bare = base.path() == "/" && base.query().is_none() && base.username().is_empty();
        if !["http", "https"].contains(&base.scheme()) || !is_bare {
            return Err(wrong());
        }
        choose_cryptography();
        let wait = Duration::from_millis(CLIENT_WAIT_MS);
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(wait);
        let http = http.build();
        Ok(Self {
            http: http.map_err(|error| ClientError::Unreachable(url.to_owned(), error.into()))?,
            base,
            key: key.to_owned(),
        })
    }

    /// Returns a client of the same server with another key or session.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            key: key.to_owned(),
            ..self.clone()
        }
    }

    /// Resolves the server's address.
    ///
    /// # Errors
    /// Fails when its name is unknown.
    pub async fn address(&self) -> Result<SocketAddr, ClientError> {
        let unreachable = |error: io::Error| ClientError::Unreachable(self.server(), error.into());
        let port = self.base.port_or_known_default().unwrap_or_default();
        let host = self.base.host_str().unwrap_or_default();
        let mut found = tokio::net::lookup_host((host.trim_matches(['[', ']']), port))
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
        self.exchange(self.request(method, path)?, body).await
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
        let request = self.request(Method::POST, path)?;
        let request = request.header("idempotency-key", key);
        self.exchange(request, Some(body)).await
    }

    /// Reads a text, such as `/metrics`.
    ///
    /// # Errors
    /// As [`Client::send`]; also when the status is no success.
    pub async fn text(&self, path: &str) -> Result<String, ClientError> {
        let (status, bytes) = self.bytes(self.request(Method::GET, path)?).await?;
        if !status.is_success() {
            let title = format!("{path} is not to be had here");
            let detail = if status == StatusCode::NOT_FOUND {
                "a server with --admin-listen has it at that address"
            } else {
                ""
            };
            return Err(ClientError::Problem(status, title, detail.to_owned()));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ClientError> {
        let url = self.base.join(path);
        let url = url.map_err(|_| ClientError::Url(path.to_owned()))?;
        let request = self.http.request(method, url);
        let request = request.header("content-type", "application/json");
        if self.key.is_empty() {
            return Ok(request);
        }
        Ok(request.bearer_auth(&self.key))
    }

    async fn exchange(
        &self,
        request: RequestBuilder,
        body: Option<&Value>,
    ) -> Result<Response, ClientError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let (status, bytes) = self.bytes(request.body(body)).await?;
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).map_err(|e| ClientError::Json(self.server(), e))?
        };
        Ok(Response { status, body })
    }

    async fn bytes(&self, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), ClientError> {
        let failed = |error| self.failed(error);
        let mut response = request.send().await.map_err(failed)?;
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(failed)? {
            if bytes.len().saturating_add(part.len()) > CLIENT_ANSWER_BYTES_MAX {
                return Err(ClientError::Long(self.server()));
            }
            bytes.extend_from_slice(&part);
        }
        Ok((response.status(), bytes))
    }

    fn server(&self) -> String {
        self.base.authority().to_owned()
    }

    fn failed(&self, error: reqwest::Error) -> ClientError {
        if error.is_timeout() {
            return ClientError::Silent(self.server());
        }
        // Its address is known, and its query may hold what is not for a log.
        let error = error.without_url();
        if error.is_connect() {
            return ClientError::Unreachable(self.server(), error.into());
        }
        let hint = if self.base.scheme() == "http" {
            "; does it serve https://?"
        } else {
            ""
        };
        ClientError::Http(self.server(), hint, error)
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
