//! Errors in Stripe's JSON.

use serde::Serialize;
use serde_json::{Value, json};

use super::cards::Decline;
use super::intent::{Expansion, Intent};

#[derive(Clone, Debug, Default, Serialize)]
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
    /// Whether its idempotency key stores it: only a call that ran is stored.
    #[serde(skip)]
    pub(super) is_remembered: bool,
}

impl Failure {
    fn new(status: u16, kind: &'static str, code: &'static str, message: String) -> Self {
        Self {
            status,
            kind,
            code,
            message,
            ..Self::default()
        }
    }

    fn remembered(mut self) -> Self {
        self.is_remembered = true;
        self
    }

    /// Builds the 400 for a parameter with a value that cannot be used.
    pub(super) fn parameter(name: &str, why: &str) -> Self {
        Self::about(name, "parameter_invalid", format!("Invalid {name}: {why}"))
    }

    /// Builds the 400 for a missing parameter.
    pub(super) fn omitted(name: &str) -> Self {
        let message = format!("Missing required param: {name}.");
        Self::about(name, "parameter_missing", message)
    }

    /// Builds the 400 for a parameter that the call does not have.
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

    /// Builds the 400 for a version of the API that does not exist.
    pub(super) fn version(version: &str) -> Self {
        let message = format!("Invalid Stripe API version: {version}");
        Self::new(400, "invalid_request_error", "", message)
    }

    /// Builds the 404 for an unknown id of a `what`, such as `payment_intent`.
    pub(super) fn missing(what: &str, id: &str) -> Self {
        let message = format!("No such {what}: '{id}'");
        Self::new(404, "invalid_request_error", "resource_missing", message).remembered()
    }

    /// Builds the 400 for an intent whose status does not permit the call; `what` is a participle.
    pub(super) fn state(intent: &Intent, what: &str) -> Self {
        let status = intent.status.as_str();
        let message =
            format!("This PaymentIntent could not be {what} because it has a status of {status}.");
        let code = "payment_intent_unexpected_state";
        let failure = Self::new(400, "invalid_request_error", code, message).remembered();
        Self {
            intent: Some(Box::new(intent.json(Expansion::Named))),
            ..failure
        }
    }

    /// Builds the 400 for a refund that is not possible.
    pub(super) fn refund(code: &'static str, message: String) -> Self {
        Self::new(400, "invalid_request_error", code, message).remembered()
    }

    /// Builds the 402 for a card that declined.
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

    /// Builds the 401 for an unknown API key or client secret.
    pub(super) fn caller() -> Self {
        let message = "Invalid API Key provided".to_owned();
        Self::new(401, "invalid_request_error", "", message)
    }

    /// Builds the 403 for an account that the key has no access to.
    pub(super) fn account(asked: &str) -> Self {
        let message = format!(
            "The provided key does not have access to account '{asked}' (or that account does not \
             exist). Application access may have been revoked."
        );
        Self::new(403, "invalid_request_error", "account_invalid", message)
    }

    /// Builds the 403 for a call that a publishable key may not make.
    pub(super) fn forbidden() -> Self {
        let message = "This API call cannot be made with a publishable API key".to_owned();
        Self::new(403, "invalid_request_error", "secret_key_required", message)
    }

    /// Builds the 404 for an unknown method and path.
    pub(super) fn route(method: &str, path: &str) -> Self {
        let message = format!("Unrecognized request URL ({method}: {path})");
        Self::new(404, "invalid_request_error", "", message)
    }

    /// Builds the 400 for an idempotency key that was used with other parameters.
    pub(super) fn key_reused() -> Self {
        let message = "Keys for idempotent requests can only be used with the same parameters they \
                       were first used with.";
        Self::new(400, "idempotency_error", "", message.to_owned())
    }

    /// Builds the 409 for an idempotency key whose first call is in progress.
    pub(super) fn key_in_use() -> Self {
        let message = "There is currently another in-progress request using this idempotency key.";
        let code = "idempotency_key_in_use";
        Self::new(409, "idempotency_error", code, message.to_owned())
    }

    /// Builds the 429 for too many calls.
    pub(super) fn rate() -> Self {
        let message = "Too many requests.".to_owned();
        Self::new(429, "invalid_request_error", "rate_limit", message)
    }

    /// Builds the 500 for an internal error.
    pub(super) fn internal() -> Self {
        let message = "An unknown error occurred".to_owned();
        Self::new(500, "api_error", "", message).remembered()
    }

    pub(super) fn json(&self) -> Value {
        json!({ "error": self })
    }
}
