//! What a payment is, and the arrows between its states (model.md 6).

/// Mirror of the provider, never ahead of it (model.md 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaymentState {
    /// An intent exists.
    Created,
    /// The buyer must do something, such as 3-D Secure.
    ActionRequired,
    /// The provider works on it.
    Processing,
    /// The money is reserved.
    Authorised,
    /// The money is taken.
    Captured,
    /// Some of it went back.
    PartlyRefunded,
    /// All of it went back.
    Refunded,
    /// Nothing was reserved, and nothing will be.
    Failed,
    /// The reservation was given up.
    Voided,
    /// The reservation ran out.
    Lapsed,
    /// The last card was declined; another one may pay.
    Declined,
}

impl PaymentState {
    /// Every state.
    pub const ALL: [Self; 11] = [
        Self::Created,
        Self::ActionRequired,
        Self::Processing,
        Self::Authorised,
        Self::Captured,
        Self::PartlyRefunded,
        Self::Refunded,
        Self::Failed,
        Self::Voided,
        Self::Lapsed,
        Self::Declined,
    ];

    /// The word of model.md, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::ActionRequired => "action_required",
            Self::Processing => "processing",
            Self::Authorised => "authorised",
            Self::Captured => "captured",
            Self::PartlyRefunded => "partly_refunded",
            Self::Refunded => "refunded",
            Self::Failed => "failed",
            Self::Voided => "voided",
            Self::Lapsed => "lapsed",
            Self::Declined => "declined",
        }
    }

    /// Whether the provider may report `next` after this: the arrows of model.md 6, and longer ways
    /// along them, since events get lost and reordered. Never back.
    pub const fn may_become(self, next: Self) -> bool {
        use PaymentState as P;
        match self {
            P::Created | P::ActionRequired | P::Processing => !matches!(next, P::Created),
            P::Declined => !matches!(next, P::Created | P::Declined),
            // The intent that failed may not be the only one that was made.
            P::Failed => next.has_come() || matches!(next, P::Voided),
            P::Authorised => matches!(
                next,
                P::Captured | P::PartlyRefunded | P::Refunded | P::Voided | P::Lapsed
            ),
            P::Captured => matches!(next, P::PartlyRefunded | P::Refunded),
            P::PartlyRefunded => matches!(next, P::PartlyRefunded | P::Refunded),
            P::Refunded | P::Voided | P::Lapsed => false,
        }
    }

    /// Whether the buyer's money was reserved or taken, whatever became of it later.
    pub const fn has_come(self) -> bool {
        matches!(
            self,
            Self::Authorised | Self::Captured | Self::PartlyRefunded | Self::Refunded
        )
    }

    /// Whether some of the buyer's money is reserved or taken now.
    pub const fn has_money(self) -> bool {
        matches!(
            self,
            Self::Authorised | Self::Captured | Self::PartlyRefunded
        )
    }
}
