//! Stripe's notices: the signature over the raw bytes is checked first, then its age, and only then
//! are the bytes parsed. An old notice with a genuine signature is refused.

use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use sha2::Sha256;
use soldonce_core::Timestamp;
use subtle::{Choice, ConstantTimeEq};

use super::settings::StripeSetupError;
use super::shape;
use crate::hex::unhex;
use crate::payment::limits::{
    STRIPE_NOTICE_BYTES_MAX, STRIPE_SIGNATURE_BYTES_MAX, STRIPE_SIGNATURES_MAX,
    STRIPE_SIGNING_SECRET_BYTES_MIN, STRIPE_TOLERANCE_MS,
};
use crate::payment::{AccountId, IntentId, Notice, NoticeId, Subject};

/// The signing secrets of the webhook: two while one is being replaced.
#[derive(Clone)]
pub struct WebhookSecrets(Vec<SecretString>);

impl WebhookSecrets {
    /// Takes the secret in use, and the one before it while that still signs.
    ///
    /// # Errors
    /// [`StripeSetupError::SigningSecret`] when one is too short to be a secret.
    pub fn new(current: &str, previous: Option<&str>) -> Result<Self, StripeSetupError> {
        let min = STRIPE_SIGNING_SECRET_BYTES_MIN;
        let secrets: Vec<&str> = [Some(current), previous].into_iter().flatten().collect();
        if secrets.iter().any(|secret| secret.len() < min) {
            return Err(StripeSetupError::SigningSecret(min));
        }
        Ok(Self(secrets.into_iter().map(SecretString::from).collect()))
    }
}

/// Why a notice is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// Longer than any notice.
    #[error("the {what} is longer than {max} bytes")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// The longest that is read.
        max: usize,
    },
    /// The header is not one of Stripe's.
    #[error("the Stripe-Signature header cannot be read: {0}")]
    Header(&'static str),
    /// Signed with none of our secrets.
    #[error("no signature is one of our secrets over these bytes")]
    Forged,
    /// Signed too long ago, or in the future: look at the clocks.
    #[error("the signature is {off_ms} ms away from our clock, at most {STRIPE_TOLERANCE_MS} ms")]
    Stale {
        /// The difference to our clock, milliseconds.
        off_ms: u64,
    },
    /// Genuine, but not as we know notices. It must not be acknowledged.
    #[error("the notice is genuine, and its {0} cannot be read")]
    Unreadable(&'static str),
}

/// Verifies and parses a notice from its raw bytes and its `Stripe-Signature` header.
///
/// A notice of something else than payments is given with no subject. Amount, currency and account
/// are for the caller to compare; its id is to be stored with its effect.
///
/// # Errors
/// [`WebhookError`]: nothing of the body was believed but for `Unreadable`.
pub fn verify(
    body: &[u8],
    signature: &str,
    secrets: &WebhookSecrets,
    now: Timestamp,
) -> Result<Notice, WebhookError> {
    if body.len() > STRIPE_NOTICE_BYTES_MAX {
        let max = STRIPE_NOTICE_BYTES_MAX;
        return Err(WebhookError::TooLong { what: "body", max });
    }
    let signed = SignatureHeader::parse(signature)?;
    if !signed.is_by_one_of(secrets, body) {
        return Err(WebhookError::Forged);
    }
    let off_ms = signed.at.until(now).ms().max(now.until(signed.at).ms());
    if off_ms > STRIPE_TOLERANCE_MS {
        return Err(WebhookError::Stale { off_ms });
    }
    read(body)
}

/// A `Stripe-Signature` header.
struct SignatureHeader<'a> {
    /// The second of signing, as it is signed.
    second: &'a str,
    at: Timestamp,
    v1: Vec<[u8; 32]>,
}

impl<'a> SignatureHeader<'a> {
    fn parse(header: &'a str) -> Result<Self, WebhookError> {
        if header.len() > STRIPE_SIGNATURE_BYTES_MAX {
            return Err(WebhookError::TooLong {
                what: "signature header",
                max: STRIPE_SIGNATURE_BYTES_MAX,
            });
        }
        let mut second = None;
        let mut v1 = Vec::new();
        for field in header.split(',') {
            let (name, value) = field
                .split_once('=')
                .ok_or(WebhookError::Header("a field has no value"))?;
            match name.trim() {
                "t" if second.is_some() => return Err(WebhookError::Header("two times")),
                "t" => second = Some(value.trim()),
                "v1" if v1.len() >= STRIPE_SIGNATURES_MAX => {
                    return Err(WebhookError::Header("too many signatures"));
                }
                // One that is no signature cannot match; the others may.
                "v1" => v1.extend(unhex(value.trim())),
                // Signatures of other versions say nothing.
                _ => {}
            }
        }
        let second = second.ok_or(WebhookError::Header("no time"))?;
        let at = time(second).ok_or(WebhookError::Header("an odd time"))?;
        Ok(Self { second, at, v1 })
    }

    /// Tells whether one of the signatures is by one of the secrets. Compares all of them, found or
    /// not, in constant time.
    fn is_by_one_of(&self, secrets: &WebhookSecrets, body: &[u8]) -> bool {
        let mut any = Choice::from(0);
        for secret in &secrets.0 {
            let secret = secret.expose_secret().as_bytes();
            let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else {
                continue;
            };
            mac.update(self.second.as_bytes());
            mac.update(b".");
            mac.update(body);
            let expected = mac.finalize().into_bytes();
            for offered in &self.v1 {
                any |= expected.as_slice().ct_eq(offered);
            }
        }
        any.into()
    }
}

/// Parses decimal seconds: no sign, no spaces, no more digits than the year 9999 has.
fn time(seconds: &str) -> Option<Timestamp> {
    let is_plain = (1..=12).contains(&seconds.len()) && seconds.bytes().all(|b| b.is_ascii_digit());
    let seconds: i64 = seconds.parse().ok().filter(|_| is_plain)?;
    Some(Timestamp::from_ms(seconds.checked_mul(1_000)?))
}

#[derive(Deserialize)]
struct NoticeShape {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    created: i64,
    account: Option<String>,
    #[serde(default)]
    livemode: bool,
    data: DataShape,
}

#[derive(Deserialize)]
struct DataShape {
    object: Value,
}

fn read(body: &[u8]) -> Result<Notice, WebhookError> {
    let unreadable = |_| WebhookError::Unreadable("body");
    let told: Value = serde_json::from_slice(body).map_err(unreadable)?;
    if told.get("object").and_then(Value::as_str) == Some(THIN_NOTICE) {
        return thin(&told);
    }
    let shape: NoticeShape = serde_json::from_value(told).map_err(unreadable)?;
    let account = shape.account.as_deref().map(AccountId::parse).transpose();
    Ok(Notice {
        id: NoticeId::parse(&shape.id).map_err(|_| WebhookError::Unreadable("name"))?,
        kind: shape.kind,
        created_at: Some(Timestamp::from_ms(shape.created.saturating_mul(1_000))),
        account: account.map_err(|_| WebhookError::Unreadable("account"))?,
        live: shape.livemode,
        subject: subject(shape.data.object)?,
    })
}

/// Stripe's name for a notice of its second kind, which names its object and does not contain it.
const THIN_NOTICE: &str = "v2.core.event";

fn thin(told: &Value) -> Result<Notice, WebhookError> {
    let text = |name: &str| told.pointer(name).and_then(Value::as_str);
    let account = text("/context").map(AccountId::parse).transpose();
    let is_intent = text("/related_object/type") == Some("payment_intent");
    let subject = text("/related_object/id").filter(|_| is_intent);
    let subject = subject.map(IntentId::parse).transpose();
    Ok(Notice {
        id: NoticeId::parse(text("/id").unwrap_or_default())
            .map_err(|_| WebhookError::Unreadable("name"))?,
        kind: text("/type").unwrap_or_default().to_owned(),
        created_at: None,
        account: account.map_err(|_| WebhookError::Unreadable("account"))?,
        live: told.get("livemode").and_then(Value::as_bool) == Some(true),
        subject: subject
            .map_err(|_| WebhookError::Unreadable("intent"))?
            .map(Subject::Named),
    })
}

/// Finds the subject of a notice: an intent that it contains in full, or an object that has one.
fn subject(told: Value) -> Result<Option<Subject>, WebhookError> {
    let text = |name: &str| told.get(name).and_then(Value::as_str);
    let is_intent = text("object") == Some("payment_intent");
    let Some(id) = text(if is_intent { "id" } else { "payment_intent" }) else {
        return Ok(None);
    };
    let id = IntentId::parse(id).map_err(|_| WebhookError::Unreadable("intent"))?;
    if !is_intent {
        return Ok(Some(Subject::Named(id)));
    }
    // What this version does not know may still be retrieved in words that it knows.
    Ok(Some(match shape::intent_of_notice(told) {
        Ok(seen) if !seen.is_half => Subject::Intent(Box::new(seen.intent)),
        Ok(_) | Err(_) => Subject::Named(id),
    }))
}
