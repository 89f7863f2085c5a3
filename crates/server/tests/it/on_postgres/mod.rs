//! The tests of what is sold once more, over HTTP on PostgreSQL: the same files.

use crate::harness::{Store, Transport, Variant};

const VARIANT: Variant = (Transport::Http, Store::Postgres);

#[path = "../variant.rs"]
mod harness;

#[path = "../access.rs"]
mod access;
#[path = "../bookings.rs"]
mod bookings;
#[path = "../events.rs"]
mod events;
#[path = "../holds.rs"]
mod holds;
#[path = "../lists.rs"]
mod lists;
#[path = "../payments.rs"]
mod payments;
#[path = "../races.rs"]
mod races;
