//! Settings of the payment provider.

use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use clap::builder::TypedValueParser;
use soldonce_clock::SystemClock;
use soldonce_engine::payment::AccountId;
use soldonce_engine::payment::stripe::{
    Capture, Stripe, StripeKey, StripeSettings, WebhookSecrets,
};
use soldonce_server::StripeNotices;

use super::words;

/// The payment provider: Stripe, or none.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_field_names, reason = "the names of the flags")]
pub(crate) struct PaymentArgs {
    /// The secret key of a Stripe account (`sk_..` or `rk_..`): holds are paid by checkout
    #[arg(long, env = "SOLDONCE_STRIPE_KEY", value_name = "KEY")]
    #[arg(hide_env_values = true)]
    pub(crate) stripe_key: Option<String>,
    /// The signing secret of Stripe's webhook to `/v1/webhooks/stripe`; two while one is replaced
    #[arg(long, env = "SOLDONCE_STRIPE_WEBHOOK_SECRET", value_name = "SECRET")]
    #[arg(value_delimiter = ',', hide_env_values = true)]
    pub(crate) stripe_webhook_secret: Vec<String>,
    /// The connected account whose payments are meant [default: that of the key]
    #[arg(long, env = "SOLDONCE_STRIPE_ACCOUNT", value_name = "ACCOUNT")]
    pub(crate) stripe_account: Option<String>,
    /// When money is taken: `manual` when the seats are sold, or `automatic` when the buyer pays, for
    /// methods that cannot reserve; a buyer who loses the seats then gets it back [default: manual]
    #[arg(long, env = "SOLDONCE_STRIPE_CAPTURE", value_name = "WHEN", value_parser = capture())]
    pub(crate) stripe_capture: Option<Capture>,
    /// Where Stripe's API is, for tests [default: that of Stripe]
    #[arg(long, env = "SOLDONCE_STRIPE_URL", value_name = "URL")]
    pub(crate) stripe_url: Option<String>,
}

/// Builds the parser of `--stripe-capture`: when money is taken.
pub(crate) fn capture() -> impl TypedValueParser<Value = Capture> {
    words([
        ("manual", "When the seats are sold", Capture::Manual),
        ("automatic", "When the buyer pays", Capture::Automatic),
    ])
}

/// Creates the Stripe provider from its key, for a connected account and at another API address if
/// they are given. Returns its settings, too.
///
/// # Errors
/// When the key or the account is invalid, or the address is not safe.
pub(crate) fn stripe(
    key: &str,
    account: Option<&String>,
    url: Option<&String>,
    capture: Capture,
) -> anyhow::Result<(Stripe, StripeSettings)> {
    let mut settings = StripeSettings::new(StripeKey::parse(key).context("stripe_key")?);
    let account = account.map(|account| AccountId::parse(account));
    settings.account = account.transpose().context("stripe_account")?;
    if let Some(url) = url {
        settings.base_url.clone_from(url);
    }
    settings.capture = capture;
    let stripe = Stripe::new(settings.clone(), Arc::new(SystemClock)).context("stripe_key")?;
    Ok((stripe, settings))
}

/// The payment provider, set up and not asked yet.
#[derive(Clone, Debug)]
pub(crate) struct PaymentPlace {
    pub(super) stripe: Arc<Stripe>,
    /// What the server verifies its webhooks with.
    pub(super) notices: StripeNotices,
}

impl PaymentPlace {
    /// Sets Stripe up if there is a key.
    ///
    /// # Errors
    /// Names the setting that is missing or wrong; shows no secret.
    pub(super) fn set_up(given: &PaymentArgs) -> anyhow::Result<Option<Self>> {
        let Some(key) = &given.stripe_key else {
            let is_alone = given.stripe_webhook_secret.is_empty()
                && given.stripe_account.is_none()
                && given.stripe_capture.is_none()
                && given.stripe_url.is_none();
            anyhow::ensure!(
                is_alone,
                "stripe_key: missing, though other settings of Stripe are given"
            );
            return Ok(None);
        };
        let (stripe, settings) = stripe(
            key,
            given.stripe_account.as_ref(),
            given.stripe_url.as_ref(),
            given.stripe_capture.unwrap_or_default(),
        )?;
        let secrets = match given.stripe_webhook_secret.as_slice() {
            [current] => WebhookSecrets::new(current, None),
            [current, previous] => WebhookSecrets::new(current, Some(previous)),
            [] => anyhow::bail!(
                "stripe_webhook_secret: missing; Stripe shows it where its webhook to \
                 /v1/webhooks/stripe is set up, and without it no payment is ever confirmed"
            ),
            _ => anyhow::bail!("stripe_webhook_secret: at most two, while one is replaced"),
        };
        let notices = StripeNotices {
            secrets: secrets.context("stripe_webhook_secret")?,
            live: settings.key.is_live(),
            account: settings.account,
        };
        let stripe = Arc::new(stripe);
        Ok(Some(Self { stripe, notices }))
    }
}
