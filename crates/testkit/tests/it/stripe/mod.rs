//! fake-stripe by its rules, over its socket.

mod client;

mod access;
mod faults;
mod intents;
mod kept;
mod keys;
mod notices;
mod refunds;
