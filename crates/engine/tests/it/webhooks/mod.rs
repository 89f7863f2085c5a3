//! Webhooks: from the commit to an endpoint that has verified and taken the message.

mod asked;
mod between;
mod ledger;
mod reach;
mod rig;
mod walks;
