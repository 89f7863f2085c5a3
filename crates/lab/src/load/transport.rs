//! HTTP/1.1 or gRPC: how a load is sent, and how a hold is written.

use std::net::SocketAddr;

use clap::ValueEnum;
use serde::Serialize;

use super::calls::Calls;
use super::request::{Requests, Wish};

/// What requests are sent as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Transport {
    #[default]
    Http,
    Grpc,
}

impl Transport {
    /// Returns how an answer of this HTTP status is counted: over gRPC by its canonical code.
    pub(crate) fn status(self, http: u16) -> u16 {
        match (self, http) {
            (Transport::Http, status) => status,
            (Transport::Grpc, 200..300) => 0,
            (Transport::Grpc, 409) => 9,
            (Transport::Grpc, 429) => 8,
            (Transport::Grpc, 503) => 14,
            // UNKNOWN: no answer that a load expects.
            (Transport::Grpc, _) => 2,
        }
    }
}

/// Writes holds of one seat, over either transport.
#[derive(Clone, Debug)]
pub(crate) enum Holds {
    Http(Requests),
    Grpc(Calls),
}

impl Holds {
    pub(crate) fn new(transport: Transport, address: SocketAddr, key: &str) -> Self {
        match transport {
            Transport::Http => Self::Http(Requests::new(address, key)),
            Transport::Grpc => Self::Grpc(Calls::new(address, key)),
        }
    }

    /// Writes the request for a hold.
    pub(crate) fn write(&self, buffer: &mut Vec<u8>, wish: Wish<'_>) {
        let requests = match self {
            Self::Http(requests) => requests,
            Self::Grpc(calls) => return calls.hold(buffer, wish),
        };
        let (event, seat) = (wish.event, wish.seat);
        let path = format_args!("/v1/events/{event}/holds");
        match wish.holder {
            Some(holder) => requests.post(
                buffer,
                path,
                format_args!(r#"{{"holder":"{holder}","units":[{{"seat":"{seat}"}}]}}"#),
            ),
            None => requests.post(
                buffer,
                path,
                format_args!(r#"{{"units":[{{"seat":"{seat}"}}]}}"#),
            ),
        }
    }
}
