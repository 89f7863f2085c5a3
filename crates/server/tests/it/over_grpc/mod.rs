//! The API's tests once more, over gRPC: the same files, with an app whose requests are calls. A request that
//! no message can be (an unknown field, a route without a method) is sent as it is.

pub(crate) mod call;

use crate::harness::{Store, Transport, Variant};

const VARIANT: Variant = (Transport::Grpc, Store::Folder);

#[path = "../variant.rs"]
mod harness;

#[path = "../access.rs"]
mod access;
#[path = "../address_holds.rs"]
mod address_holds;
#[path = "../bookings.rs"]
mod bookings;
#[path = "../events.rs"]
mod events;
#[path = "../holds.rs"]
mod holds;
#[path = "../leases.rs"]
mod leases;
#[path = "../limits.rs"]
mod limits;
#[path = "../lists.rs"]
mod lists;
#[path = "../payments.rs"]
mod payments;
#[path = "../races.rs"]
mod races;
#[path = "../webhooks.rs"]
mod webhooks;
