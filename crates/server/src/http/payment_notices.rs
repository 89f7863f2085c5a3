//! Notices that the payment provider sends. The signature over the raw bytes is checked first, and
//! the answer comes after the commit: without it the provider sends the notice again.

use axum::http::HeaderName;
use serde::Serialize;
use soldonce_engine::payment::stripe::{WebhookError, verify};
use soldonce_engine::payment::{AccountId, Notice};
use utoipa::ToSchema;

use super::api_request::ApiRequest;
use super::app::App;
use super::operation::{Tag, post};
use super::problem::{Handled, Problem};
use super::refusals::COMMANDS;
use super::route::Admission::Anyone;
use super::route::BodySize;
use super::table::Table;
use super::{answer, kinds};
use crate::settings::StripeNotices;

const STRIPE_SIGNATURE: HeaderName = HeaderName::from_static("stripe-signature");

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Bookings);
    table.add(
        post("/v1/webhooks/stripe", Anyone)
            .id("stripe_notice")
            .summary("For Stripe: what became of payments, signed")
            .sized(BodySize::Notice)
            .refuses(&[&[&kinds::NOT_FOUND, &kinds::PAYMENT_UNAVAILABLE], COMMANDS])
            .gives_bare::<Received>("It is committed"),
        stripe,
    );
}

async fn stripe(mut req: ApiRequest) -> Handled {
    // Strangers may ask: what is not set up reads nothing.
    let Some(settings) = req.app.settings.stripe.clone() else {
        return Err(Problem::new(&kinds::NOT_FOUND));
    };
    let body = req.raw().await?;
    let signature = req.parts.headers.get(STRIPE_SIGNATURE);
    let signature = signature.and_then(|value| value.to_str().ok());
    let (engine, signature) = (&req.app.engine, signature.unwrap_or_default());
    let notice = verify(&body, signature, &settings.secrets, engine.wall_now());
    let notice = notice.map_err(|error| refused(&req.app, &error))?;
    if is_ours(&settings, &notice) {
        engine.take_notice(&notice).await?;
    }
    Ok(answer::plain(&Received { received: true }))
}

/// Tells whether a notice is about the account and the kind of money that this server is set up
/// for. The own account is not named in its notices, a connected one is. Another is answered as
/// taken: Stripe sends what others cause to the same place, and would go on for days.
fn is_ours(settings: &StripeNotices, notice: &Notice) -> bool {
    let (id, account) = (notice.id.as_str(), notice.account.as_ref());
    let account = account.map(AccountId::as_str);
    if notice.account != settings.account {
        tracing::warn!(
            notice = id,
            account,
            "a notice is refused: it is about another account"
        );
        return false;
    }
    if settings.live.is_some_and(|live| live != notice.live) {
        let live = notice.live;
        tracing::warn!(
            notice = id,
            live,
            "a notice is refused: test or real money, unlike the key"
        );
        return false;
    }
    true
}

/// Refuses a notice and logs it. Strangers can send false ones, so these share a line a minute.
fn refused(app: &App, error: &WebhookError) -> Problem {
    if let Some(left_out) = app.false_notices.pass(app.clock().boot()) {
        tracing::warn!(%error, left_out, "a notice was not believed");
    }
    Problem::invalid("Stripe-Signature", error)
}

/// A notice is taken.
#[derive(Serialize, ToSchema)]
struct Received {
    received: bool,
}
