//! Webhooks: from the commit to an endpoint that has verified and taken the message.

mod asked;
mod between;
mod ledger;
#[cfg(feature = "planted")]
mod planted;
mod reach;
mod rig;
mod walks;
