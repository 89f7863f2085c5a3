//! Requests of the API's tests as calls of gRPC. A request that no message can be (an unknown field, a route without a
//! method) is sent as it is.

pub(crate) mod call;
