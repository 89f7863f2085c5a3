//! The meaning of answers that are no success: which may be asked again, and which never change.

use serde::Deserialize;
use soldonce_core::Span;

use crate::payment::ProviderError;

/// An answer as it was received.
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    /// Whether Stripe had given it before, to the same key.
    pub(super) is_replayed: bool,
    pub(super) retry_after: Option<Span>,
    pub(super) body: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The first call with this key broke inside Stripe, which says so again for a day. Whether it
    /// took effect is not known; that it has ended is.
    #[error("status {0} again for the same key")]
    Stuck(u16),
    /// An error as of any provider.
    #[error(transparent)]
    Failed(#[from] ProviderError),
}

impl CallError {
    pub(super) fn may_be_repeated(&self) -> bool {
        match self {
            Self::Stuck(_) => false,
            Self::Failed(error) => error.may_be_repeated(),
        }
    }

    pub(super) fn retry_after(&self) -> Option<Span> {
        match self {
            Self::Failed(ProviderError::Busy { retry_after }) => *retry_after,
            Self::Stuck(_) | Self::Failed(_) => None,
        }
    }
}

impl From<CallError> for ProviderError {
    fn from(missed: CallError) -> Self {
        match missed {
            CallError::Stuck(_) => Self::Unknown(missed.to_string()),
            CallError::Failed(error) => error,
        }
    }
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorShape,
}

#[derive(Default, Deserialize)]
struct ErrorShape {
    #[serde(default, rename = "type")]
    kind: String,
    code: Option<String>,
    decline_code: Option<String>,
    #[serde(default)]
    message: String,
}

impl HttpAnswer {
    /// Returns the body of a success, or the error that the status means.
    pub(super) fn judge(self) -> Result<Vec<u8>, CallError> {
        let status = self.status;
        let failed = match status {
            200..=299 => return Ok(self.body),
            500..=599 if self.is_replayed => return Err(CallError::Stuck(status)),
            401 | 403 => ProviderError::Misconfigured(format!("status {status}")),
            402 => declined(self.error()),
            409 | 429 => ProviderError::Busy {
                retry_after: self.retry_after,
            },
            400..=499 => refused(status, self.error()),
            300..=399 => ProviderError::Misconfigured(format!("status {status} leads elsewhere")),
            _ => ProviderError::Unknown(format!("status {status}")),
        };
        Err(failed.into())
    }

    fn error(&self) -> ErrorShape {
        let body = serde_json::from_slice::<ErrorBody>(&self.body);
        body.map(|body| body.error).unwrap_or_default()
    }
}

fn declined(error: ErrorShape) -> ProviderError {
    ProviderError::Declined {
        code: error.decline_code.or(error.code).unwrap_or(error.kind),
    }
}

fn refused(status: u16, error: ErrorShape) -> ProviderError {
    ProviderError::Refused {
        status,
        code: error.code.unwrap_or(error.kind),
        message: error.message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: u16, body: &str) -> ProviderError {
        let heard = HttpAnswer {
            status,
            is_replayed: false,
            retry_after: Some(Span::from_ms(3_000)),
            body: body.into(),
        };
        heard.judge().unwrap_err().into()
    }

    #[test]
    fn each_status_has_its_meaning() {
        let body = r#"{"error":{"type":"t","code":"c","decline_code":"d","message":"m"}}"#;
        let refused = |status| ProviderError::Refused {
            status,
            code: "c".to_owned(),
            message: "m".to_owned(),
        };
        assert_eq!(judged(400, body), refused(400));
        assert_eq!(judged(404, body), refused(404));
        let code = "d".to_owned();
        assert_eq!(judged(402, body), ProviderError::Declined { code });
        let retry_after = Some(Span::from_ms(3_000));
        for status in [409, 429] {
            assert_eq!(judged(status, body), ProviderError::Busy { retry_after });
        }
        for status in [301, 302, 307, 401, 403] {
            let error = judged(status, body);
            assert!(matches!(error, ProviderError::Misconfigured(_)), "{status}");
        }
        for status in [100, 500, 502, 503, 504, 999] {
            let error = judged(status, body);
            assert!(matches!(error, ProviderError::Unknown(_)), "{status}");
        }
    }

    #[test]
    fn a_body_that_is_no_json_changes_no_meaning() {
        let error = judged(400, "<html>");
        assert!(matches!(error, ProviderError::Refused { status: 400, .. }));
        let code = String::new();
        assert_eq!(judged(402, ""), ProviderError::Declined { code });
    }

    #[test]
    fn a_failure_that_is_replayed_is_not_asked_for_again() {
        let heard = |is_replayed| HttpAnswer {
            status: 500,
            is_replayed,
            retry_after: None,
            body: Vec::new(),
        };
        let stuck = heard(true).judge().unwrap_err();
        assert!(matches!(stuck, CallError::Stuck(500)) && !stuck.may_be_repeated());
        let fresh = heard(false).judge().unwrap_err();
        assert!(matches!(fresh, CallError::Failed(_)) && fresh.may_be_repeated());
    }
}
