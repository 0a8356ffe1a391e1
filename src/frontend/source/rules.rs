//! The servers that sources may be fetched from. The rules keep copies from reaching into the
//! private network of this server.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

/// Names or addresses of servers: `host.example`, `*.example` (any name below), `192.0.2.0/24`,
/// `2001:db8::/32`, one address, or `*`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Pattern {
    /// Everything.
    All,
    /// A host name, lower case.
    Name(String),
    /// All names below a domain, lower case, without the leading dot.
    Below(String),
    /// The addresses with the same leading bits.
    Network(IpAddr, u8),
}

/// A pattern that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{0}' is no host name, no address and no network; write host.example, *.example, 10.0.0.0/8 or *"
)]
pub struct PatternError(String);

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let refused = || PatternError(text.to_owned());
        let plain = text.trim();
        if plain == "*" {
            return Ok(Self::All);
        }
        let (address, bits) = plain.split_once('/').map_or((plain, None), |(a, b)| (a, Some(b)));
        if let Ok(ip) = address.trim_matches(['[', ']']).parse::<IpAddr>() {
            let most = if ip.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Ok(most), str::parse).map_err(|_| refused())?;
            return if bits <= most { Ok(Self::Network(ip, bits)) } else { Err(refused()) };
        }
        let name = plain.trim_end_matches('.').to_ascii_lowercase();
        let (below, name) = match name.strip_prefix("*.") {
            Some(rest) => (true, rest.to_owned()),
            None => (false, name),
        };
        let is_name = name.split('.').all(|label| {
            !label.is_empty()
                && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        });
        match (is_name, below) {
            (false, _) => Err(refused()),
            (true, true) => Ok(Self::Below(name)),
            (true, false) => Ok(Self::Name(name)),
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl Pattern {
    /// `name` in lower case, `ip` in canonical form.
    fn matches(&self, name: &str, ip: IpAddr) -> bool {
        match self {
            Self::All => true,
            Self::Name(own) => own == name,
            Self::Below(domain) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            Self::Network(network, bits) => shares(*network, ip, *bits),
        }
    }
}

fn shares(network: IpAddr, ip: IpAddr, bits: u8) -> bool {
    let wide = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)) << 96, 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    };
    let ((own, kind), (other, other_kind)) = (wide(network), wide(ip));
    let dropped = 128 - u32::from(bits.min(128));
    kind == other_kind && (own ^ other).checked_shr(dropped).unwrap_or(0) == 0
}

/// The permitted and the denied servers. A denied address is never used, unless only `*` denies it
/// and another pattern allows it. An allowed address is always used. Of the rest, only public
/// addresses are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Allowed, also with a private address.
    pub allow: Vec<Pattern>,
    /// Never used.
    pub deny: Vec<Pattern>,
}

impl Rules {
    /// Whether a source on `host`, which resolved to `ip`, is permitted. `ip` must be the address
    /// that is connected to.
    #[must_use]
    pub fn permit(&self, host: &str, ip: IpAddr) -> bool {
        let name = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        let ip = ip.to_canonical();
        let any = |patterns: &[Pattern]| patterns.iter().any(|p| p.matches(&name, ip));
        let named: Vec<Pattern> =
            self.deny.iter().filter(|p| **p != Pattern::All).cloned().collect();
        if any(&named) {
            return false;
        }
        any(&self.allow) || (!self.deny.contains(&Pattern::All) && is_public(ip))
    }
}

/// Networks that are not the public internet. Source: IANA special-purpose address registries (RFC
/// 6890).
const SPECIAL_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// Parts of the global unicast range that are not public, or that embed an IPv4 address.
const SPECIAL_V6: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];
/// The global unicast range.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => !SPECIAL_V4.iter().any(|(net, bits)| shares(IpAddr::V4(*net), ip, *bits)),
        IpAddr::V6(_) => {
            shares(IpAddr::V6(GLOBAL_V6.0), ip, GLOBAL_V6.1)
                && !SPECIAL_V6.iter().any(|(net, bits)| shares(IpAddr::V6(*net), ip, *bits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> Rules {
        let read = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Rules { allow: read(allow), deny: read(deny) }
    }

    fn permits(rules: &Rules, host: &str, ip: &str) -> bool {
        rules.permit(host, ip.parse().unwrap())
    }

    #[test]
    fn only_public_addresses_are_open_by_default() {
        let rules = Rules::default();
        for ip in ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111"] {
            assert!(permits(&rules, "host.example", ip), "{ip}");
        }
        for ip in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:0:1::",
            "2001:db8::1",
        ] {
            assert!(!permits(&rules, "host.example", ip), "{ip}");
        }
    }

    #[test]
    fn allowed_names_and_networks_are_open_whatever_their_address() {
        let rules = rules(&["Storage.example.", "*.internal", "10.1.0.0/16", "::1"], &[]);
        assert!(permits(&rules, "storage.EXAMPLE", "10.0.0.1"));
        assert!(permits(&rules, "a.b.internal", "127.0.0.1"));
        assert!(!permits(&rules, "internal", "127.0.0.1"));
        assert!(!permits(&rules, "notinternal", "127.0.0.1"));
        assert!(permits(&rules, "x.example", "10.1.255.255"));
        assert!(!permits(&rules, "x.example", "10.2.0.0"));
        assert!(permits(&rules, "[::1]", "::1"));
    }

    #[test]
    fn denied_is_denied_and_a_star_denies_the_rest() {
        let listed = rules(&["*.example"], &["bad.example", "8.8.8.0/24"]);
        assert!(!permits(&listed, "bad.example", "1.1.1.1"));
        assert!(!permits(&listed, "good.example", "8.8.8.8"));
        assert!(permits(&listed, "good.example", "8.8.4.4"));
        let closed = rules(&["good.example"], &["*"]);
        assert!(permits(&closed, "good.example", "127.0.0.1"));
        assert!(!permits(&closed, "other.example", "1.1.1.1"));
    }

    #[test]
    fn patterns_that_cannot_be_read_are_refused() {
        for text in ["", "a b", "10.0.0.0/33", "::/129", "10.0.0.0/x", "a..b", "*.", "http://x"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
        assert_eq!("0.0.0.0/0".parse(), Ok(Pattern::Network(Ipv4Addr::UNSPECIFIED.into(), 0)));
    }
}
