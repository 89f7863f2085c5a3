//! Refusals in Stripe's shape.

use serde::Serialize;
use serde_json::{Value, json};

use super::cards::Decline;

#[derive(Clone, Debug, Serialize)]
pub(super) struct Failure {
    #[serde(skip)]
    pub(super) status: u16,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decline_code: Option<&'static str>,
    /// The parameter it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<String>,
    message: String,
    /// The intent it is about, as Stripe puts it into the error.
    #[serde(rename = "payment_intent", skip_serializing_if = "Option::is_none")]
    intent: Option<Box<Value>>,
    /// Whether an idempotency key remembers it: only what ran does.
    #[serde(skip)]
    pub(super) is_remembered: bool,
}

impl Failure {
    fn new(status: u16, kind: &'static str, code: &'static str, message: String) -> Self {
        Self {
            status,
            kind,
            code,
            decline_code: None,
            param: None,
            message,
            intent: None,
            is_remembered: false,
        }
    }

    fn remembered(mut self) -> Self {
        self.is_remembered = true;
        self
    }

    /// A parameter that cannot be used.
    pub(super) fn parameter(name: &str, why: &str) -> Self {
        Self::about(name, "parameter_invalid", format!("Invalid {name}: {why}"))
    }

    /// A parameter that is needed.
    pub(super) fn omitted(name: &str) -> Self {
        let message = format!("Missing required param: {name}.");
        Self::about(name, "parameter_missing", message)
    }

    /// A parameter that the call does not have.
    pub(super) fn unknown(name: &str) -> Self {
        let message = format!("Received unknown parameter: {name}");
        Self::about(name, "parameter_unknown", message)
    }

    fn about(param: &str, code: &'static str, message: String) -> Self {
        Self {
            param: Some(param.to_owned()),
            ..Self::new(400, "invalid_request_error", code, message)
        }
    }

    /// A version of the API that does not exist.
    pub(super) fn version(version: &str) -> Self {
        let message = format!("Invalid Stripe API version: {version}");
        Self::new(400, "invalid_request_error", "", message)
    }

    /// There is no such thing.
    pub(super) fn missing(what: &str, id: &str) -> Self {
        let message = format!("No such {what}: '{id}'");
        Self::new(404, "invalid_request_error", "resource_missing", message).remembered()
    }

    /// The intent is not in a state for that.
    pub(super) fn state(intent: Value, what: &str) -> Self {
        let status = intent.get("status").and_then(Value::as_str);
        let message = format!(
            "This PaymentIntent could not be {what} because it has a status of {}.",
            status.unwrap_or_default()
        );
        let code = "payment_intent_unexpected_state";
        let failure = Self::new(400, "invalid_request_error", code, message).remembered();
        Self {
            intent: Some(Box::new(intent)),
            ..failure
        }
    }

    /// A refund that cannot be.
    pub(super) fn refund(code: &'static str, message: String) -> Self {
        Self::new(400, "invalid_request_error", code, message).remembered()
    }

    /// The card said no.
    pub(super) fn card(decline: Decline, intent: Value) -> Self {
        let message = decline.message.to_owned();
        let failure = Self::new(402, "card_error", decline.code, message).remembered();
        Self {
            decline_code: decline.reason,
            param: decline.param.map(str::to_owned),
            intent: Some(Box::new(intent)),
            ..failure
        }
    }

    /// The caller is not known.
    pub(super) fn caller() -> Self {
        let message = "Invalid API Key provided".to_owned();
        Self::new(401, "invalid_request_error", "", message)
    }

    /// The key reaches no such account.
    pub(super) fn account(asked: &str) -> Self {
        let message = format!(
            "The provided key does not have access to account '{asked}' (or that account does not \
             exist). Application access may have been revoked."
        );
        Self::new(403, "invalid_request_error", "account_invalid", message)
    }

    /// The caller may not do that.
    pub(super) fn forbidden() -> Self {
        let message = "This API call cannot be made with a publishable API key".to_owned();
        Self::new(403, "invalid_request_error", "secret_key_required", message)
    }

    /// No route.
    pub(super) fn route(method: &str, path: &str) -> Self {
        let message = format!("Unrecognized request URL ({method}: {path})");
        Self::new(404, "invalid_request_error", "", message)
    }

    /// A key that was used for something else.
    pub(super) fn key_reused() -> Self {
        let message = "Keys for idempotent requests can only be used with the same parameters they \
                       were first used with.";
        Self::new(400, "idempotency_error", "", message.to_owned())
    }

    /// A key that is at work.
    pub(super) fn key_in_use() -> Self {
        let message = "There is currently another in-progress request using this idempotency key.";
        let code = "idempotency_key_in_use";
        Self::new(409, "idempotency_error", code, message.to_owned())
    }

    /// Too many calls.
    pub(super) fn rate() -> Self {
        let message = "Too many requests.".to_owned();
        Self::new(429, "invalid_request_error", "rate_limit", message)
    }

    /// Something broke inside.
    pub(super) fn internal() -> Self {
        let message = "An unknown error occurred".to_owned();
        Self::new(500, "api_error", "", message).remembered()
    }

    pub(super) fn json(&self) -> Value {
        json!({ "error": self })
    }
}
