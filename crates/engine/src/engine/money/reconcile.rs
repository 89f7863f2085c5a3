//! The reconciler: asks the provider about payments that are not at their end, and has the ledger
//! take note of what notices did not bring. What it finds is settled by the same rules as a notice.

use std::sync::Arc;
use std::time::Duration;

use soldonce_core::{Booking, BookingId, BookingState, PaymentState, Span};
use tokio_util::sync::CancellationToken;

use super::{Engine, StepError, intent_id};
use crate::limits::{RECONCILE_AT_ONCE_MAX, RECONCILE_EVERY_MS, RECONCILE_OLDER_MS};
use crate::payment::Intent;

/// Where the provider knows more than the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which booking.
    pub booking: BookingId,
    /// What it is.
    pub state: BookingState,
    /// What the ledger believes of the payment.
    pub known: PaymentState,
    /// What the provider says.
    pub told: PaymentState,
    /// In words: "paid, not fulfilled" and the like.
    pub what: &'static str,
}

/// What is done about a mismatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconcile {
    /// The ledger takes note of it.
    Settle,
    /// It is told, and nothing else.
    Look,
}

/// Reconciles now and then until `shutdown`.
///
/// # Cancel safety
/// Dropped between two steps it leaves nothing half done.
pub async fn run_reconciler(engine: Engine, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    loop {
        let next = clock.boot().plus(Duration::from_millis(RECONCILE_EVERY_MS));
        let round = async {
            clock.sleep_until(next).await;
            let older = Span::from_ms(RECONCILE_OLDER_MS);
            engine.reconcile(older, Reconcile::Settle).await
        };
        match shutdown.run_until_cancelled(round).await {
            None => return,
            Some(found) => {
                for mismatch in found {
                    let (booking, what) = (mismatch.booking, mismatch.what);
                    tracing::warn!(%booking, what, "settled by the reconciler");
                }
            }
        }
    }
}

impl Engine {
    /// Compares payments that are older than so long with the provider's word, and gives what differs.
    ///
    /// # Cancel safety
    /// Dropped, some may have been settled.
    pub async fn reconcile(&self, older: Span, way: Reconcile) -> Vec<Mismatch> {
        let before = self.now().minus(older);
        let unsettled = self.parts.ledger.unsettled(before, RECONCILE_AT_ONCE_MAX);
        let unsettled = match unsettled.await {
            Ok(unsettled) => unsettled,
            Err(error) => {
                tracing::warn!(%error, "payments cannot be reconciled");
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for booking in unsettled {
            match self.reconcile_one(&booking, way).await {
                Ok(mismatch) => found.extend(mismatch),
                Err(error) => {
                    tracing::warn!(booking = %booking.id, %error, "a payment cannot be reconciled");
                }
            }
        }
        found
    }

    async fn reconcile_one(
        &self,
        booking: &Booking,
        way: Reconcile,
    ) -> Result<Option<Mismatch>, StepError> {
        // Without an intent it is the outbox that asks for one.
        let (Some(payment), Some(id)) = (&booking.payment, intent_id(booking)?) else {
            return Ok(None);
        };
        let intent = self.cashier()?.retrieve(&id).await?;
        if !payment.state.may_become(intent.state) {
            return Ok(None);
        }
        if way == Reconcile::Settle {
            self.tell(booking.id, &intent, None, None).await?;
        }
        Ok(Some(Mismatch {
            booking: booking.id,
            state: booking.state,
            known: payment.state,
            told: intent.state,
            what: in_words(booking, &intent),
        }))
    }
}

fn in_words(booking: &Booking, intent: &Intent) -> &'static str {
    match booking.state {
        BookingState::NeedsRefund => "money that went back",
        BookingState::Confirmed | BookingState::PartlyCancelled | BookingState::Cancelled => {
            "a payment that went on"
        }
        BookingState::PendingPayment
        | BookingState::Failed
        | BookingState::Expired
        | BookingState::Refunded => {
            if intent.state.has_come() {
                "paid, not fulfilled"
            } else {
                "a payment that ended"
            }
        }
    }
}
