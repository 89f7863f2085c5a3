//! Ports on the loopback interface. A server is told its port before it binds it, and binds it
//! again after a restart, so the number is reserved for it in between: by a UDP socket on the same
//! number, which other tests cannot bind, which disturbs no TCP server and ends with the process.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

/// Above 10080, the last that browsers refuse to ask, and below the range from which the kernel takes the ports of
/// outgoing connections (32768 and up): a client that connects to the port of a dead server must not be connected
/// to itself.
const FIRST: u32 = 10_100;
const COUNT: u32 = 21_900;

/// A port that no other test of this machine uses while this value lives.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _kept: UdpSocket,
}

impl Port {
    /// Reserves a port without a listener.
    pub fn reserve() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Processes begin far from each other, so that they seldom try the same port.
        let start = std::process::id().wrapping_mul(7_919);
        (0..COUNT)
            .find_map(|_| {
                let step = NEXT.fetch_add(1, Ordering::Relaxed);
                let number = FIRST + start.wrapping_add(step) % COUNT;
                Self::try_reserve(u16::try_from(number).ok()?)
            })
            .context("no port between 10100 and 32000 is free")
    }

    fn try_reserve(number: u16) -> Option<Self> {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, number);
        let kept = UdpSocket::bind(address).ok()?;
        TcpListener::bind(address).ok()?;
        Some(Self {
            number,
            _kept: kept,
        })
    }

    /// Returns its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_until_it_is_given_back() {
        let first = Port::reserve().unwrap();
        assert!(Port::try_reserve(first.number()).is_none());
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, first.number())).unwrap();
        let number = first.number();
        drop(first);
        assert!(
            Port::try_reserve(number).is_none(),
            "a server listens on it"
        );
        drop(server);
    }
}
