//! The addresses that count as one peer.

use std::net::IpAddr;

/// One peer: an IPv4 address, or an IPv6 network of 64 bits. A client that has one address of such
/// a network usually has all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PeerKey {
    V4(u32),
    V6([u16; 4]),
}

impl PeerKey {
    /// The peer at an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip.to_bits()),
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Self::V6([a, b, c, d])
            }
        }
    }

    /// Whether it is on this machine.
    pub(super) const fn is_loopback(self) -> bool {
        match self {
            Self::V4(bits) => bits >> 24 == 127,
            // Only ::1 of this network occurs here: other addresses were mapped to IPv4.
            Self::V6(network) => matches!(network, [0, 0, 0, 0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_addresses_and_networks_of_64_bits() {
        let key = |text: &str| PeerKey::of(text.parse().unwrap());
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(key("192.0.2.1"), key("::ffff:192.0.2.1"));
        for (text, expected) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("128.0.0.1", false),
            ("192.0.2.127", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(key(text).is_loopback(), expected, "{text}");
        }
    }
}
