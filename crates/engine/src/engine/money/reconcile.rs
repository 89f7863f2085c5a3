//! The reconciler: compares payments that are not at their end with the provider's records, looks
//! for steps that are overdue, and settles what it finds by the same rules as a notice or the
//! outbox. Comparing and settling are separate, so that one can compare without changing anything.

use std::fmt;
use std::sync::Arc;

use soldonce_core::{Booking, BookingId, BookingState, Effect, PaymentState, Span, Timestamp};
use tokio_util::sync::CancellationToken;

use super::{Engine, StepError, intent_id};
use crate::ledger::{MadeAt, OpenMoney, ReadError};
use crate::limits::{
    RECONCILE_AT_ONCE_MAX, RECONCILE_EVERY_MS, RECONCILE_OLDER_MS, REPAIR_REFUSALS_MAX,
};
use crate::payment::{Intent, PaymentProvider, ProviderError};

/// A payment or step that is not as it should be by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub booking: BookingId,
    pub state: BookingState,
    /// The state of its payment in the ledger.
    pub known: Option<PaymentState>,
    /// In words: "paid, not fulfilled" and the like.
    pub what: &'static str,
    /// What repairs it.
    pub remedy: Remedy,
}

/// The repair of a mismatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Record in the ledger what the provider says.
    TakeNote(Box<Intent>),
    /// Carry out a step at the provider.
    Step(Effect),
    /// Ask again: the provider must answer first.
    AskAgain(ProviderError),
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakeNote(intent) => write!(f, "take note of `{}`", intent.state.as_str()),
            Self::Step(Effect::Authorise(_)) => f.write_str("ask for an intent"),
            Self::Step(Effect::Capture(_)) => f.write_str("take the money"),
            Self::Step(Effect::Void(_)) => f.write_str("give the reserved money up"),
            Self::Step(Effect::CancelIntent(_)) => f.write_str("cancel the intent"),
            Self::Step(Effect::Refund { total, .. }) => {
                write!(f, "give back what is missing to {}", total.minor())
            }
            Self::AskAgain(error) => write!(f, "ask again: {error}"),
        }
    }
}

/// Reconciles periodically until `shutdown`. Steps that are overdue are left to the outbox.
///
/// # Cancel safety
/// Dropped between two steps it leaves nothing half done.
pub async fn run_reconciler(engine: Engine, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    let mut pass = Pass::default();
    loop {
        let next = clock.boot().plus_ms(RECONCILE_EVERY_MS);
        let round = async {
            clock.sleep_until(next).await;
            engine.reconcile_unsettled(&mut pass).await
        };
        match shutdown.run_until_cancelled(round).await {
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::warn!(%error, "payments cannot be reconciled"),
        }
    }
}

/// The position among all unsettled bookings: those that nothing settles do not hide the others.
#[derive(Default)]
struct Pass {
    after: Option<MadeAt>,
    /// How many could not be settled so far.
    in_vain: i64,
}

/// Compares open payments with the provider's records. Changes nothing.
///
/// # Cancel safety
/// Dropped, nothing was changed.
pub async fn mismatches(provider: &dyn PaymentProvider, open: &OpenMoney) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for booking in &open.unsettled {
        found.extend(compare(provider, booking).await);
    }
    let overdue = |(booking, effect): &(Booking, Effect)| Mismatch {
        what: late_step(*effect),
        ..mismatch(booking, Remedy::Step(*effect))
    };
    found.extend(open.steps.iter().map(overdue));
    found
}

/// Compares a payment with the provider; `None` unless the provider knows more or fails to answer.
async fn compare(provider: &dyn PaymentProvider, booking: &Booking) -> Option<Mismatch> {
    // Without an intent it is the outbox that asks for one.
    let known = booking.payment.as_ref()?.state;
    let id = intent_id(booking).ok().flatten()?;
    match provider.retrieve(&id).await {
        Ok(intent) if known.may_become(intent.state) => Some(Mismatch {
            what: unheard_of(booking.state, intent.state),
            ..mismatch(booking, Remedy::TakeNote(Box::new(intent)))
        }),
        Ok(_) => None,
        Err(error) => Some(mismatch(booking, Remedy::AskAgain(error))),
    }
}

impl Engine {
    /// Finds all payments and steps that were open before this time, and still are.
    ///
    /// # Errors
    /// [`ReadError`] when the ledger cannot be read.
    ///
    /// # Cancel safety
    /// Dropped, nothing was changed.
    pub async fn open_money(&self, before: Timestamp) -> Result<OpenMoney, ReadError> {
        let ledger = &self.parts.ledger;
        let unsettled = ledger.unsettled(before, (None, usize::MAX)).await?;
        let mut steps = Vec::new();
        for open in ledger.overdue_effects(before).await? {
            let booking = ledger.booking(open.effect.booking()).await?;
            steps.extend(booking.map(|booking| (booking, open.effect)));
        }
        Ok(OpenMoney { unsettled, steps })
    }

    /// Settles what [`mismatches`] found: the ledger records what the provider said, or the
    /// provider is asked for a step once more.
    ///
    /// # Errors
    /// Why it is not settled yet.
    ///
    /// # Cancel safety
    /// Dropped, it may have been settled; the same again is harmless.
    pub async fn repair(&self, mismatch: &Mismatch) -> Result<(), super::EngineError> {
        let repaired = match &mismatch.remedy {
            Remedy::TakeNote(intent) => self.tell(mismatch.booking, intent, None, None).await,
            Remedy::Step(effect) => self.carry_out_past_refusals(*effect).await,
            Remedy::AskAgain(error) => Err(error.clone().into()),
        };
        repaired.map_err(StepError::told)
    }

    /// Carries out an effect with the next key after each refusal: the provider repeats those that
    /// it gave to other servers or on days before.
    async fn carry_out_past_refusals(&self, effect: Effect) -> Result<(), StepError> {
        let mut round = 0;
        loop {
            let tried = round;
            let done = self.carry_out(effect, &mut round).await;
            if done.is_ok() || round == tried || round == REPAIR_REFUSALS_MAX {
                return done;
            }
        }
    }

    /// Settles one page of payments that no notice told of. The next call continues behind it, and
    /// begins anew at the end.
    async fn reconcile_unsettled(&self, pass: &mut Pass) -> Result<(), ReadError> {
        let Some(provider) = self.provider() else {
            return Ok(());
        };
        let before = self.now().minus(Span::from_ms(RECONCILE_OLDER_MS));
        let ledger = &self.parts.ledger;
        let unsettled = ledger.unsettled(before, (pass.after, RECONCILE_AT_ONCE_MAX));
        let unsettled = unsettled.await?;
        let is_last = unsettled.len() < RECONCILE_AT_ONCE_MAX;
        let bookings = unsettled.iter();
        let places = bookings.map(|booking| (booking.created_at, booking.id));
        pass.after = places.max().filter(|_| !is_last);
        let steps = Vec::new();
        for mismatch in mismatches(&**provider, &OpenMoney { unsettled, steps }).await {
            let (booking, what) = (mismatch.booking, mismatch.what);
            match self.repair(&mismatch).await {
                Ok(()) => {
                    tracing::warn!(%booking, what, "settled by the reconciler");
                    let found = &self.parts.metrics.reconciled;
                    found.get_or_create(&[("what", what)]).inc();
                }
                Err(error) => {
                    pass.in_vain += 1;
                    tracing::warn!(%booking, what, %error, "a payment cannot be reconciled");
                }
            }
        }
        if is_last {
            let in_vain = std::mem::take(&mut pass.in_vain);
            self.parts.metrics.unreconciled.set(in_vain);
        }
        Ok(())
    }
}

fn mismatch(booking: &Booking, remedy: Remedy) -> Mismatch {
    Mismatch {
        booking: booking.id,
        state: booking.state,
        known: booking.payment.as_ref().map(|payment| payment.state),
        what: "the provider was asked in vain",
        remedy,
    }
}

fn unheard_of(state: BookingState, told: PaymentState) -> &'static str {
    match state {
        BookingState::NeedsRefund => "money that went back",
        BookingState::Confirmed | BookingState::PartlyCancelled | BookingState::Cancelled => {
            "a payment that went on"
        }
        BookingState::PendingPayment
        | BookingState::Failed
        | BookingState::Expired
        | BookingState::Refunded => {
            if told.has_come() {
                "paid, not fulfilled"
            } else {
                "a payment that ended"
            }
        }
    }
}

fn late_step(effect: Effect) -> &'static str {
    match effect {
        Effect::Authorise(_) => "begun, never asked for",
        Effect::Capture(_) => "authorised, never captured",
        Effect::Void(_) => "authorised, never given up",
        Effect::CancelIntent(_) => "given up, may still be paid",
        Effect::Refund { .. } => "refund stuck",
    }
}
