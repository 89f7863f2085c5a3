//! Notices: the webhooks of a provider. One may come five times, late, in any order or never: it is
//! a reason to look, and its id makes sure that it works once.

use soldonce_core::{Timestamp, text_id};

use super::name::token;
use super::{Intent, IntentId};
use crate::limits::PROVIDER_ID_BYTES_MAX;

text_id! {
    /// The provider's name for a notice: the same for every copy of it.
    NoticeId, token, PROVIDER_ID_BYTES_MAX
}
text_id! {
    /// The provider's name for one of its customers: us.
    AccountId, token, PROVIDER_ID_BYTES_MAX
}

/// The subject of a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An intent as it was when the notice was written, all that matters in it.
    Intent(Box<Intent>),
    /// Something of this intent changed that the notice does not tell in full: retrieve it.
    Named(IntentId),
}

/// A genuine notice of a provider, its signature and age checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub id: NoticeId,
    /// The provider's word for what happened, for the log.
    pub kind: String,
    /// When it was written, on the provider's clock, if it says.
    pub created_at: Option<Timestamp>,
    /// Its account, if it names one other than that whose secret signed it.
    pub account: Option<AccountId>,
    /// Whether real money moved, not that of a test.
    pub live: bool,
    /// Its subject; `None` if it does not concern payments.
    pub subject: Option<Subject>,
}
