//! Whose request it is by address: the peer's, or what proxies say that the operator trusts.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName};

/// The header in which proxies name the address that came to them.
pub(crate) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The header in which proxies name the scheme by which a request came to them.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Addresses with a common beginning, such as `10.0.0.0/8`, `fd00::/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// An address of IPv4 in its form as one of IPv6.
    first: u128,
    mask: u128,
}

/// A text is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNetwork {
    /// It is neither an address nor an address with a number of bits.
    #[error("no address or network: write 10.1.2.3, 10.0.0.0/8 or fd00::/8")]
    Form,
    /// It names an address inside the network instead of the first one.
    #[error("begins inside its network: the bits after the prefix must be zero")]
    Inside,
}

/// Bits of an address of IPv6 before one of IPv4.
const MAPPED_BITS: u32 = 96;

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork::Form)?;
        let (before, most) = match address {
            IpAddr::V4(_) => (MAPPED_BITS, 32),
            IpAddr::V6(_) => (0, 128),
        };
        let prefix = match prefix {
            Some(digits) => digits.parse().map_err(|_| InvalidNetwork::Form)?,
            None => most,
        };
        if prefix > most {
            return Err(InvalidNetwork::Form);
        }
        let mask = u128::MAX.checked_shl(128 - before - prefix).unwrap_or(0);
        let first = bits(address);
        if first & !mask == 0 {
            Ok(Self { first, mask })
        } else {
            Err(InvalidNetwork::Inside)
        }
    }
}

impl Network {
    /// Tells whether an address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        bits(address) & self.mask == self.first
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// Returns what counts as one address: of IPv6 the /64 network, which is one customer's.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let bits = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(bits))
        }
    }
}

/// Returns the bits by which an address is counted.
pub(crate) fn id_of(address: IpAddr) -> u128 {
    bits(network(address))
}

/// Tells whether any of the networks has this address.
pub(crate) fn is_among(address: IpAddr, trusted: &[Network]) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// Tells whether a trusted proxy says that the request came to it by HTTPS. Of several values the
/// last one is the proxy's own.
pub(crate) fn is_https(peer: IpAddr, trusted: &[Network], headers: &HeaderMap) -> bool {
    let last = headers.get_all(FORWARDED_PROTO).iter().next_back();
    let last = last.and_then(|line| line.to_str().ok()?.rsplit(',').next());
    is_among(peer, trusted)
        && last.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
}

/// Finds the address that a request came from: the peer's, unless that is a trusted proxy. Then the
/// nearest one before it that is none, read from the right over all lines of the header, because
/// all further left is what the client wrote. What cannot be read makes it the peer's.
pub(crate) fn client(peer: IpAddr, trusted: &[Network], headers: &HeaderMap) -> IpAddr {
    let is_trusted = |address| is_among(address, trusted);
    if !is_trusted(peer) {
        return peer;
    }
    let mut nearest = peer;
    for line in headers.get_all(FORWARDED_FOR).iter().rev() {
        let Ok(line) = line.to_str() else {
            return peer;
        };
        for part in line.rsplit(',') {
            let Some(address) = parse(part.trim()) else {
                return peer;
            };
            if !is_trusted(address) {
                return address;
            }
            nearest = address;
        }
    }
    nearest
}

/// Parses an address, also as some proxies write it: `192.0.2.1:443` or `[2001:db8::1]:443`.
fn parse(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Ok(with_port) = text.parse::<std::net::SocketAddr>() {
        return Some(with_port.ip());
    }
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    inside.parse().ok().map(IpAddr::V6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn found(peer: &str, trusted: &[&str], lines: &[&str]) -> IpAddr {
        let trusted: Vec<Network> = trusted.iter().map(|text| text.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        client(address(peer), &trusted, &headers)
    }

    #[test]
    fn no_peer_is_believed_unless_trusted() {
        for lines in [&["1.2.3.4"][..], &["1.2.3.4, 10.0.0.1"], &["x"], &[]] {
            assert_eq!(found("192.0.2.1", &[], lines), address("192.0.2.1"));
            assert_eq!(
                found("192.0.2.1", &["10.0.0.0/8"], lines),
                address("192.0.2.1")
            );
        }
    }

    #[test]
    fn the_nearest_address_that_is_no_proxy_is_taken() {
        let proxies = ["10.0.0.0/8", "::1", "fd00::/8"];
        for (lines, expected) in [
            (&["1.2.3.4"][..], "1.2.3.4"),
            (&["9.9.9.9, 1.2.3.4"], "1.2.3.4"),
            (&["9.9.9.9", "1.2.3.4"], "1.2.3.4"),
            (&["9.9.9.9, 1.2.3.4", "10.1.1.1, 10.2.2.2"], "1.2.3.4"),
            (&["junk, 1.2.3.4, fd00::7"], "1.2.3.4"),
            (&["1.2.3.4:443"], "1.2.3.4"),
            (&["[2001:db8::1]:443"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["::ffff:1.2.3.4"], "::ffff:1.2.3.4"),
            (&["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
            (&[], "10.0.0.1"),
        ] {
            assert_eq!(
                found("10.0.0.1", &proxies, lines),
                address(expected),
                "{lines:?}"
            );
        }
        assert_eq!(
            found("::ffff:10.0.0.1", &proxies, &["1.2.3.4"]),
            address("1.2.3.4")
        );
    }

    #[test]
    fn only_the_nearest_trusted_proxy_says_that_it_was_https() {
        let trusted = ["127.0.0.1".parse().unwrap()];
        let said = |peer: &str, lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_PROTO, line.parse().unwrap());
            }
            is_https(address(peer), &trusted, &headers)
        };
        for lines in [
            &["https"][..],
            &["HTTPS"],
            &["http, https"],
            &["http", " https "],
        ] {
            assert!(said("127.0.0.1", lines), "{lines:?}");
            assert!(!said("192.0.2.1", lines), "{lines:?}");
        }
        for lines in [
            &[][..],
            &["http"],
            &["https, http"],
            &["https", "http"],
            &["wss"],
            &[""],
        ] {
            assert!(!said("127.0.0.1", lines), "{lines:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_makes_it_the_peers() {
        for line in [
            "",
            "x",
            "1.2.3.4,",
            "unknown",
            "1.2.3.4.5",
            "1.2.3.4, x",
            "[1.2.3.4]",
        ] {
            assert_eq!(
                found("10.0.0.1", &["10.0.0.1"], &[line]),
                address("10.0.0.1"),
                "{line}"
            );
        }
        let mut headers = HeaderMap::new();
        let odd = axum::http::HeaderValue::from_bytes(b"1.2.3.4, \xff").unwrap();
        headers.append(FORWARDED_FOR, odd);
        let trusted = ["10.0.0.1".parse().unwrap()];
        assert_eq!(
            client(address("10.0.0.1"), &trusted, &headers),
            address("10.0.0.1")
        );
    }

    #[test]
    fn networks_are_read_and_wrong_ones_refused() {
        let network = |text: &str| text.parse::<Network>();
        for (text, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("0.0.0.0/0", "8.8.8.8", "2001:db8::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("::/0", "2001:db8::1", "::"),
        ] {
            let network = network(text).unwrap();
            assert!(network.contains(address(inside)), "{text}");
            assert_eq!(network.contains(address(outside)), text == "::/0", "{text}");
        }
        for wrong in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/-1",
            "10.0.0.0/",
            "h",
            "10/8",
        ] {
            assert_eq!(network(wrong), Err(InvalidNetwork::Form), "{wrong}");
        }
        assert_eq!(network("10.0.0.1/8"), Err(InvalidNetwork::Inside));
    }

    #[test]
    fn of_ipv6_a_whole_network_is_one_and_of_ipv4_each_address() {
        let id = |text: &str| id_of(address(text));
        assert_eq!(id("2001:db8::1"), id("2001:db8::ffff:ffff:ffff:ffff"));
        assert_ne!(id("2001:db8::1"), id("2001:db8:0:1::1"));
        assert_ne!(id("192.0.2.1"), id("192.0.2.2"));
        assert_eq!(id("192.0.2.1"), id("::ffff:192.0.2.1"));
        assert_ne!(id("::1"), id("0.0.0.1"));
    }
}
