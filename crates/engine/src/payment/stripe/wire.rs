//! One call over HTTP: encrypted, with a limit on time, tries and size, without following redirects.
//! Nothing of a body, the key or a client secret is ever logged.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, Url, redirect};
use soldonce_clock::Clock;
use soldonce_core::Span;
use soldonce_tls::choose_cryptography;
use tracing::Instrument;
use tracing::field::Empty;

use super::API_VERSION;
use super::refusal::{CallError, HttpAnswer};
use super::settings::{StripeSettings, StripeSetupError};
use crate::metrics::SPANS;
use crate::payment::ProviderError;
use crate::payment::limits::{
    STRIPE_ANSWER_BYTES_MAX, STRIPE_CONNECT_MS, STRIPE_RETRY_AFTER_MS_MAX, STRIPE_TRIES_MAX,
};

/// The fields of a form.
type Form<'a> = &'a [(&'a str, String)];

pub(super) struct Ask<'a> {
    /// The path with its query. Holds no secret.
    path: &'a str,
    /// The form that is posted, and the idempotency key; none if it only reads.
    posted: Option<(Form<'a>, &'a str)>,
}

impl<'a> Ask<'a> {
    pub(super) fn get(path: &'a str) -> Self {
        let posted = None;
        Self { path, posted }
    }

    pub(super) fn post(path: &'a str, form: Form<'a>, key: &'a str) -> Self {
        let posted = Some((form, key));
        Self { path, posted }
    }
}

pub(super) struct Wire {
    client: Client,
    settings: StripeSettings,
    clock: Arc<dyn Clock>,
}

impl Wire {
    pub(super) fn new(
        settings: StripeSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StripeSetupError> {
        let settings = StripeSettings {
            base_url: base_url(&settings.base_url)?,
            ..settings
        };
        choose_cryptography();
        let builder = if settings.base_url.starts_with("https:") {
            Client::builder()
        } else {
            // On this machine nothing is encrypted: reading all the roots would be for nothing.
            Client::builder().tls_certs_only([])
        };
        let client = builder
            .user_agent(concat!("soldonce/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(Duration::from_millis(STRIPE_CONNECT_MS))
            .timeout(Duration::from_millis(settings.call_timeout.ms()))
            .build()
            .map_err(|error| StripeSetupError::Tls(error.to_string()))?;
        Ok(Self {
            client,
            settings,
            clock,
        })
    }

    /// Makes a call, again with the same key while its outcome is not known; returns a body of
    /// success. All tries together take no longer than the longest wait for one answer: a buyer
    /// waits.
    pub(super) async fn call(&self, ask: &Ask<'_>) -> Result<Vec<u8>, CallError> {
        let patience = Duration::from_millis(self.settings.call_timeout.ms());
        let end = self.clock.boot().plus(patience);
        let mut tries = 0;
        loop {
            let missed = match self.call_once(ask, end.since(self.clock.boot())).await {
                Ok(heard) => match heard.judge() {
                    Ok(body) => return Ok(body),
                    Err(missed) => missed,
                },
                Err(error) => error.into(),
            };
            tries += 1;
            let wait = self.pause(tries, missed.retry_after());
            let again = self.clock.boot().plus(wait);
            // Where Stripe asks for a longer pause, it is the caller who keeps it.
            let is_too_long = wait > Duration::from_millis(STRIPE_RETRY_AFTER_MS_MAX);
            let is_over = tries >= STRIPE_TRIES_MAX || is_too_long || again >= end;
            if is_over || !missed.may_be_repeated() {
                return Err(missed);
            }
            tracing::warn!(path = ask.path, tries, %missed, "stripe: asked again");
            self.clock.sleep_until(again).await;
        }
    }

    /// Returns the wait that Stripe asks for, else one that doubles with each try.
    fn pause(&self, tries: u32, said: Option<Span>) -> Duration {
        let doubled = self.settings.retry_wait.ms() << (tries - 1).min(8);
        let doubled = doubled.min(STRIPE_RETRY_AFTER_MS_MAX);
        Duration::from_millis(said.map_or(doubled, Span::ms))
    }

    async fn call_once(&self, ask: &Ask<'_>, wait: Duration) -> Result<HttpAnswer, ProviderError> {
        let method = if ask.posted.is_some() { "POST" } else { "GET" };
        let span = tracing::info_span!(
            target: SPANS, "stripe.request", otel.kind = "client", http.request.method = method,
            url.path = ask.path.split('?').next(), http.response.status_code = Empty,
        );
        let answer = self.send(ask, wait).instrument(span.clone()).await;
        if let Ok(answer) = &answer {
            span.record("http.response.status_code", answer.status);
        }
        answer
    }

    async fn send(&self, ask: &Ask<'_>, wait: Duration) -> Result<HttpAnswer, ProviderError> {
        let url = format!("{}{}", self.settings.base_url, ask.path);
        let request = match ask.posted {
            Some((form, key)) => {
                let request = self.client.post(url).form(form);
                request.header("Idempotency-Key", key)
            }
            None => self.client.get(url),
        };
        let mut request = request
            .bearer_auth(self.settings.key.expose())
            .header("Stripe-Version", API_VERSION)
            .timeout(wait);
        if let Some(account) = &self.settings.account {
            request = request.header("Stripe-Account", account.as_str());
        }
        let mut response = request.send().await.map_err(|error| unknown(&error))?;
        let body = capped(&mut response).await?;
        let headers = response.headers();
        Ok(HttpAnswer {
            status: response.status().as_u16(),
            is_replayed: headers.contains_key("idempotent-replayed"),
            retry_after: retry_after(headers),
            body,
        })
    }
}

/// Reads the whole body, unless it is longer than any answer should be.
async fn capped(response: &mut Response) -> Result<Vec<u8>, ProviderError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unknown(&error))? {
        if body.len() + chunk.len() > STRIPE_ANSWER_BYTES_MAX {
            let why = format!("the answer is longer than {STRIPE_ANSWER_BYTES_MAX} bytes");
            return Err(ProviderError::Unknown(why));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Converts a failure of the connection: no answer, or half of one.
fn unknown(error: &reqwest::Error) -> ProviderError {
    let why = if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke"
    };
    ProviderError::Unknown(why.to_owned())
}

fn retry_after(headers: &HeaderMap) -> Option<Span> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Span::from_ms(seconds.saturating_mul(1_000)))
}

/// Checks a URL to which a key may be sent; returns it without the slash at its end.
fn base_url(text: &str) -> Result<String, StripeSetupError> {
    let refused = || StripeSetupError::Url(text.to_owned());
    let url = Url::parse(text).map_err(|_| refused())?;
    let is_here = matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
    let is_private = match url.scheme() {
        "https" => true,
        "http" => is_here,
        _ => false,
    };
    let is_bare = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if is_private && is_bare {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    Err(refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sent_encrypted_or_not_beyond_this_machine() {
        for text in [
            "https://api.stripe.com",
            "https://api.stripe.com/",
            "http://127.0.0.1:12111",
            "http://[::1]:1",
            "http://localhost:1",
        ] {
            assert_eq!(base_url(text).as_deref(), Ok(text.trim_end_matches('/')));
        }
        let wrong = "api.stripe.com http://api.stripe.com http://127.0.0.1.example.org \
            http://localhost.example.org ftp://127.0.0.1 https://user:word@api.stripe.com \
            https://api.stripe.com/v1 https://api.stripe.com?a https://api.stripe.com#a";
        for text in wrong.split(' ').chain([""]) {
            let refused = base_url(text).unwrap_err();
            assert_eq!(refused, StripeSetupError::Url(text.to_owned()));
        }
    }
}
