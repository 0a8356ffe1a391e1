//! Addresses of listeners, as users write them, such as `:10000` and `localhost:10000`.

use std::fmt;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

/// A TCP address: an IP address and a port, `:PORT` (all IPv4 addresses of the machine) or
/// `localhost:PORT` (`127.0.0.1`). Other names are not resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ListenAddress(pub SocketAddr);

/// Not an address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not an address: write 127.0.0.1:10000, localhost:10000, [::1]:10000, or :10000 for all \
     IPv4 addresses of this machine"
)]
pub struct ListenAddressError(String);

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        if let Ok(address) = text.parse() {
            return Ok(Self(address));
        }
        let host_and_port = text.rsplit_once(':').and_then(|(host, port)| {
            let ip = match host {
                "" => Ipv4Addr::UNSPECIFIED,
                host if host.eq_ignore_ascii_case("localhost") => Ipv4Addr::LOCALHOST,
                _ => return None,
            };
            let digits = port.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| port.parse().ok()).flatten().map(|port: u16| (ip, port))
        });
        let (ip, port) = host_and_port.ok_or_else(|| ListenAddressError(text.to_owned()))?;
        Ok(Self(SocketAddr::new(ip.into(), port)))
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = ListenAddressError;

    fn try_from(text: String) -> Result<Self, ListenAddressError> {
        text.parse()
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An address that a client on this machine can connect to: loopback in the place of an address
/// that means all interfaces.
#[must_use]
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, read) in [
            (":10000", "0.0.0.0:10000"),
            (":0", "0.0.0.0:0"),
            ("localhost:10000", "127.0.0.1:10000"),
            ("LocalHost:1", "127.0.0.1:1"),
            ("127.0.0.1:10000", "127.0.0.1:10000"),
            ("[::1]:10000", "[::1]:10000"),
            ("[::]:10000", "[::]:10000"),
        ] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), read, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_examples() {
        for text in ["", ":", "10000", "::1:10000", "localhost", "a.example:1", ":65536", ":+1"] {
            let refused = text.parse::<ListenAddress>().unwrap_err().to_string();
            assert!(refused.contains(&format!("`{text}`")), "{refused}");
            assert!(refused.contains(" :10000 ") && refused.contains("[::1]:10000"), "{refused}");
        }
    }
}
