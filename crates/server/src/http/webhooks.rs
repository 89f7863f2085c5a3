//! What the payment provider tells unasked. The signature over the raw bytes comes first, and the
//! answer after the commit: whatever else happens, the provider tells it again.

use axum::http::{HeaderName, StatusCode};
use axum::response::Response;
use soldonce_engine::payment::Notice;
use soldonce_engine::payment::stripe::{WebhookError, verify};

use super::answer;
use super::asked::Asked;
use super::kinds;
use super::problem::{Handled, Problem};
use crate::settings::StripeNotices;

const STRIPE_SIGNATURE: HeaderName = HeaderName::from_static("stripe-signature");

/// `POST /v1/webhooks/stripe`
pub(super) async fn stripe(mut asked: Asked) -> Handled {
    let body = asked.raw().await?;
    let Some(settings) = asked.app.settings.stripe.clone() else {
        return Err(Problem::new(&kinds::NOT_FOUND));
    };
    let signature = asked.parts.headers.get(STRIPE_SIGNATURE);
    let signature = signature.and_then(|value| value.to_str().ok());
    let engine = &asked.app.engine;
    let notice = verify(
        &body,
        signature.unwrap_or_default(),
        &settings.secrets,
        engine.now(),
    );
    let notice = notice.map_err(|error| refused(&error))?;
    if is_ours(&settings, &notice) {
        engine.take_notice(&notice).await?;
    }
    Ok(taken())
}

/// The own account is not named in its notices, another's is.
fn is_ours(settings: &StripeNotices, notice: &Notice) -> bool {
    let is_ours = notice.account.is_none() || notice.account == settings.account;
    if !is_ours {
        let account = notice
            .account
            .as_ref()
            .map(soldonce_engine::payment::AccountId::as_str);
        tracing::warn!(
            notice = notice.id.as_str(),
            account,
            "a notice is about another account"
        );
    }
    is_ours
}

fn refused(error: &WebhookError) -> Problem {
    tracing::warn!(%error, "a notice was not believed");
    Problem::invalid("Stripe-Signature", error)
}

fn taken() -> Response {
    answer::json(StatusCode::OK, "{\"received\":true}")
}
