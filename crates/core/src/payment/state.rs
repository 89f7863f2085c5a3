//! The states of a payment, and the arrows between them (model.md 6).

use crate::words::words;

words! {
    /// The state of a payment: a mirror of the provider, never ahead of it (model.md 6).
    #[derive(Default)]
    pub PaymentState:
    #[default]
    Created = "created",
    /// The buyer must do something, such as 3-D Secure.
    ActionRequired = "action_required",
    Processing = "processing",
    Authorised = "authorised",
    Captured = "captured",
    PartlyRefunded = "partly_refunded",
    Refunded = "refunded",
    /// Nothing was reserved, and nothing will be.
    Failed = "failed",
    Voided = "voided",
    Lapsed = "lapsed",
    /// The last card was declined; another one may pay.
    Declined = "declined",
}

impl PaymentState {
    /// Tells whether `next` is news after this: the arrows of model.md 6, and longer ways along
    /// them, since events get lost and reordered. Never back, nor the same again.
    pub const fn may_become(self, next: Self) -> bool {
        use PaymentState as P;
        match self {
            P::Created => !matches!(next, P::Created),
            P::ActionRequired => !matches!(next, P::Created | P::ActionRequired),
            P::Processing => !matches!(next, P::Created | P::Processing),
            P::Declined => !matches!(next, P::Created | P::Declined),
            // The intent that failed may not be the only one that was made.
            P::Failed => next.has_come() || matches!(next, P::Voided),
            P::Authorised => matches!(
                next,
                P::Captured | P::PartlyRefunded | P::Refunded | P::Voided | P::Lapsed
            ),
            P::Captured => matches!(next, P::PartlyRefunded | P::Refunded),
            P::PartlyRefunded => matches!(next, P::Refunded),
            P::Refunded | P::Voided | P::Lapsed => false,
        }
    }

    /// Tells whether the buyer's money was reserved or taken, even if it went back later.
    pub const fn has_come(self) -> bool {
        matches!(
            self,
            Self::Authorised | Self::Captured | Self::PartlyRefunded | Self::Refunded
        )
    }

    /// Tells whether some of the buyer's money is reserved or taken now.
    pub const fn has_money(self) -> bool {
        matches!(
            self,
            Self::Authorised | Self::Captured | Self::PartlyRefunded
        )
    }
}
