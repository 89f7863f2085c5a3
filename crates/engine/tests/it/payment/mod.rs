//! The Stripe adapter against fake-stripe: what it asks, what it makes of answers and of none, and
//! which notices it believes.

mod rig;

mod calls;
mod corpus;
mod faults;
mod notices;
