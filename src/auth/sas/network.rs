//! From where a signature may be used: addresses and protocol.

use std::net::IpAddr;

/// Reads `sip`: one address, or first and last with a hyphen between, both of one family.
pub(super) fn address_range(text: &str) -> Option<(IpAddr, IpAddr)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (IpAddr, IpAddr) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first.is_ipv4() == last.is_ipv4() && first <= last).then_some((first, last))
}

/// Whether an address lies in the range; an IPv4 address in IPv6 clothes is an IPv4 address.
pub(super) fn contains((first, last): (IpAddr, IpAddr), address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_ipv4() == first.is_ipv4() && first <= address && address <= last
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
        let range = address_range("168.1.5.60-168.1.5.70").unwrap();
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
            assert_eq!(contains(range, address.parse().unwrap()), inside, "{address}");
        }
        assert!(contains(address_range("::1").unwrap(), "::1".parse().unwrap()));
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
            assert_eq!(address_range(text), None, "{text}");
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
