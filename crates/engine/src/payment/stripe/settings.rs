//! The settings of Stripe.

use secrecy::{ExposeSecret, SecretString};
use soldonce_core::{Span, words};

use crate::payment::AccountId;
use crate::payment::limits::{STRIPE_CALL_MS, STRIPE_RETRY_MS};

/// The secret key of an account. Not shown in `Debug`, never logged.
#[derive(Clone)]
pub struct StripeKey(SecretString);

impl StripeKey {
    /// Checks and takes `text`.
    ///
    /// # Errors
    /// [`StripeSetupError::Key`] when it is no key of a server.
    pub fn parse(text: &str) -> Result<Self, StripeSetupError> {
        let is_of_server = ["sk_", "rk_"].iter().any(|own| text.starts_with(own));
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if is_of_server && text.len() <= 255 && text.bytes().all(is_legal) {
            return Ok(Self(text.into()));
        }
        Err(StripeSetupError::Key)
    }

    /// Tells whether it moves real money, as its text says; `None` for old keys, which do not say.
    pub fn is_live(&self) -> Option<bool> {
        let (_, rest) = self.expose().split_once('_')?;
        match rest.split_once('_')?.0 {
            "live" => Some(true),
            "test" => Some(false),
            _ => None,
        }
    }

    pub(super) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

words! {
    /// When the money is taken that a buyer pays, in Stripe's words.
    #[derive(Default)]
    pub Capture:
    /// When the seats are sold: until then it is only reserved, so a buyer who loses them is not charged.
    /// Stripe then offers the methods that can reserve.
    #[default]
    Manual = "manual",
    /// At once, by Stripe, so that every method may pay. A buyer who loses the seats gets it back.
    Automatic = "automatic",
}

/// The settings of Stripe.
#[derive(Clone, Debug)]
pub struct StripeSettings {
    /// The account's secret key.
    pub key: StripeKey,
    /// The connected account that each call is for, if it is not the key's own.
    pub account: Option<AccountId>,
    /// Where the API is, without a path: another place only for tests and the demo.
    pub base_url: String,
    /// When money is taken.
    pub capture: Capture,
    /// Longest wait for an answer, all tries of one call together.
    pub call_timeout: Span,
    /// Wait before a call whose outcome is not known is made again; each further one is twice as
    /// long.
    pub retry_wait: Span,
}

impl StripeSettings {
    /// Returns the settings for Stripe itself, with this key.
    pub fn new(key: StripeKey) -> Self {
        Self {
            key,
            account: None,
            base_url: "https://api.stripe.com".to_owned(),
            capture: Capture::Manual,
            call_timeout: Span::from_ms(STRIPE_CALL_MS),
            retry_wait: Span::from_ms(STRIPE_RETRY_MS),
        }
    }
}

/// Why these settings cannot be used. Carries no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StripeSetupError {
    /// Not a key of a server.
    #[error("the Stripe key is none of a server: it begins with `sk_` or `rk_`")]
    Key,
    /// A URL that a key must not be sent to.
    #[error("`{0}` is no URL for Stripe: https://, or http:// of this machine, without a path")]
    Url(String),
    /// A signing secret that can be guessed.
    #[error("the signing secret of Stripe's webhook is shorter than {0} bytes")]
    SigningSecret(usize),
    /// TLS cannot be set up.
    #[error("TLS for Stripe cannot be set up: {0}")]
    Tls(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_page_is_refused_and_none_is_shown() {
        let key = StripeKey::parse("sk_test_4eC39").unwrap();
        assert_eq!(format!("{key:?}"), "StripeKey { .. }");
        assert!(!format!("{:?}", StripeSettings::new(key)).contains("4eC39"));
        for (text, is_live) in [
            ("sk_live_1", Some(true)),
            ("rk_live_1", Some(true)),
            ("sk_test_1", Some(false)),
            ("sk_1", None),
            ("sk_of_1", None),
        ] {
            assert_eq!(StripeKey::parse(text).unwrap().is_live(), is_live, "{text}");
        }
        for text in ["", "pk_test_1", "whsec_1", "sk_test 1", "sk_test_1\r\nX: y"] {
            let refused = StripeKey::parse(text).unwrap_err();
            assert_eq!(refused, StripeSetupError::Key, "{text:?}");
        }
    }
}
