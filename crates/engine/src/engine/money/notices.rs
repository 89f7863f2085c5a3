//! Notices of the provider. A notice is answered after its effect is committed, and works once: its
//! id is the idempotency key of the command that records it. It may come twice, late, out of order,
//! before its cause was answered, or never; amounts are totals, so none of it matters.

use soldonce_core::{CallerId, Rejection};

use super::{Engine, StepError};
use crate::engine::EngineError;
use crate::ledger::RequestKey;
use crate::payment::{Intent, Notice, ProviderError, Subject};

/// The route of notices in idempotency records.
const ROUTE: &str = "notices of the provider";

impl Engine {
    /// Records a genuine notice in the ledger. One of something else, of a payment that is none of
    /// ours, or of another amount, currency or intent than the booking's has no effect.
    ///
    /// # Errors
    /// Why it was not committed: then the provider must send it again.
    ///
    /// # Cancel safety
    /// Dropped, it may have been committed: the provider sends it again, and it works once.
    pub async fn take_notice(&self, notice: &Notice) -> Result<(), EngineError> {
        let Some(subject) = &notice.subject else {
            return Ok(());
        };
        let intent = match subject {
            Subject::Intent(intent) => (**intent).clone(),
            Subject::Named(id) => match self
                .provider_or_err()
                .map_err(StepError::told)?
                .retrieve(id)
                .await
            {
                Ok(intent) => intent,
                // The provider itself does not know it, or does not show it to us.
                Err(error @ ProviderError::Refused { .. }) => {
                    let (notice, kind) = (notice.id.as_str(), notice.kind.as_str());
                    tracing::warn!(notice, kind, intent = %id, %error, "a notice is about nothing we know");
                    return Ok(());
                }
                Err(error) => return Err(EngineError::Provider(error)),
            },
        };
        let Some(booking) = intent.booking else {
            return Ok(());
        };
        let key = RequestKey::new(
            CallerId::from_bytes([0; 16]),
            ROUTE,
            notice.id.as_str(),
            &[intent.id.as_str()],
            b"{}",
        );
        let taken = self.tell(booking, &intent, None, Some(key)).await;
        match taken.map_err(StepError::told) {
            // An account may be shared with others, whose payments may name bookings too.
            Err(EngineError::Rejected(Rejection::BookingNotFound)) => {
                tracing::warn!(%booking, intent = %intent.id, "a notice is about no booking of ours");
                Ok(())
            }
            // Told again, it would still be wrong.
            Err(EngineError::Rejected(error @ Rejection::PaymentMismatch(_))) => {
                let label = [("step", "notice"), ("outcome", "mismatch")];
                self.parts.metrics.payments.get_or_create(&label).inc();
                complain(notice, &intent, &error.into());
                Ok(())
            }
            Err(error) => {
                complain(notice, &intent, &error);
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }
}

fn complain(notice: &Notice, intent: &Intent, error: &EngineError) {
    let (notice, kind) = (notice.id.as_str(), notice.kind.as_str());
    tracing::warn!(notice, kind, intent = %intent.id, %error, "a notice was not taken");
}
