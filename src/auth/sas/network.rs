//! The addresses and protocols from which a signature may be used.

use std::net::IpAddr;

/// A range of addresses of one family, with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// Reads `sip`: one address, or the first and the last with a hyphen between them.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last): (IpAddr, IpAddr) =
            (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first.is_ipv4() == last.is_ipv4() && first <= last).then_some(Self { first, last })
    }

    /// Whether an address lies in the range. An IPv4-mapped IPv6 address counts as IPv4.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && self.first <= address && address <= self.last
    }
}

/// Reads `spr`: whether plain HTTP is allowed.
pub(super) fn allows_http(text: &str) -> Option<bool> {
    match text {
        "https" => Some(false),
        "https,http" | "http,https" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_both_ends_and_one_family() {
        let range = AddressRange::parse("168.1.5.60-168.1.5.70").unwrap();
        for (address, inside) in [
            ("168.1.5.60", true),
            ("168.1.5.70", true),
            ("168.1.5.65", true),
            ("::ffff:168.1.5.65", true),
            ("168.1.5.59", false),
            ("168.1.5.71", false),
            ("168.1.4.65", false),
            ("::1", false),
        ] {
            assert_eq!(range.contains(address.parse().unwrap()), inside, "{address}");
        }
        assert!(AddressRange::parse("::1").unwrap().contains("::1".parse().unwrap()));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "-",
            "1.2.3",
            "1.2.3.4-",
            "1.2.3.4-1.2.3.3",
            "1.2.3.4-::1",
            "1.2.3.4/8",
            "a-b",
            "1.2.3.4-1.2.3.5-1.2.3.6",
        ] {
            assert_eq!(AddressRange::parse(text), None, "{text}");
        }
    }

    #[test]
    fn protocols_are_two_words() {
        assert_eq!(allows_http("https"), Some(false));
        assert_eq!(allows_http("https,http"), Some(true));
        for text in ["http", "", "HTTPS", "https,", "https, http"] {
            assert_eq!(allows_http(text), None, "{text}");
        }
    }
}
