//! The host that a request names, and the check against DNS rebinding.
//!
//! The owner of a web page can make the page's host name resolve to 127.0.0.1. The browser then
//! sends requests of the page to this server and lets the page read the answers. Such requests
//! carry the page's name in `Host`, so they are recognised by a name that was not configured for
//! this server.

use std::net::IpAddr;
use std::net::Ipv6Addr;

use http::Version;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use thiserror::Error as ThisError;

/// The largest length of a host name (RFC 1035, section 2.3.4).
const NAME_MAX: usize = 255;
/// This name, and names below it, always mean this machine (RFC 6761, section 6.3).
const LOCALHOST: &str = "localhost";

/// Why a request has no valid host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum HostError {
    /// No `Host`, and no `:authority`.
    #[error("the request has no Host header")]
    Missing,
    /// More than one `Host`.
    #[error("the request has more than one Host header")]
    Repeated,
    /// Neither a name nor an address, or an invalid port.
    #[error("the Host header is not a host name or an address, with or without a port")]
    Malformed,
    /// `Host` and `:authority` differ.
    #[error("the Host header is not the host of the request's :authority")]
    Conflict,
}

/// The host and, if given, the port of a request, as the request spells them. HTTP/1.1 names it in
/// `Host`; a host in the request target takes precedence. HTTP/2 names it in `:authority`; a `Host`
/// header must then be equal.
///
/// # Errors
/// [`HostError`].
pub fn host(head: &Parts) -> Result<&str, HostError> {
    let mut given = head.headers.get_all(HOST).iter();
    let given = match (given.next(), given.next()) {
        (None, _) => None,
        (Some(one), None) => Some(one.to_str().map_err(|_| HostError::Malformed)?),
        (Some(_), Some(_)) => return Err(HostError::Repeated),
    };
    let target = head.uri.authority().map(Authority::as_str);
    let by_authority = head.version >= Version::HTTP_2;
    for named in [given, target].into_iter().flatten() {
        split(named).ok_or(HostError::Malformed)?;
    }
    match (given, target) {
        (Some(given), Some(target)) if by_authority && !given.eq_ignore_ascii_case(target) => {
            Err(HostError::Conflict)
        }
        (Some(_), Some(target)) => Ok(target),
        (Some(given), None) => Ok(given),
        (None, Some(target)) if by_authority => Ok(target),
        (None, _) => Err(HostError::Missing),
    }
}

/// The name or address and the port of a well-formed host.
fn split(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, rest)) => {
            inside.parse::<Ipv6Addr>().ok()?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (inside, port)
        }
        None => {
            let (name, port) = match host.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (host, None),
            };
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_plain) {
                return None;
            }
            (name, port)
        }
    };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    match port {
        None => Some((name, None)),
        Some(text) => number(text).map(|port| (name, Some(port))),
    }
}

/// The hosts under which the server answers: names of this machine, addresses and configured names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownHosts {
    /// Whether every host is known.
    pub any: bool,
    /// Known domains: these names and all names below them.
    pub domains: Vec<String>,
    /// Known names, without the names below them.
    pub names: Vec<String>,
}

impl KnownHosts {
    /// Whether a host, as [`host`] returns it, is known.
    #[must_use]
    pub fn know(&self, host: &str) -> bool {
        if self.any {
            return true;
        }
        let Some((name, _)) = split(host) else { return false };
        // A page under an address is served by that address itself: only a name can be rebound.
        if name.parse::<IpAddr>().is_ok() {
            return true;
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        is_below(name, LOCALHOST)
            || self.domains.iter().any(|domain| is_below(name, domain))
            || self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// The name of a host without its port, for messages.
#[must_use]
pub fn name(host: &str) -> &str {
    split(host).map_or(host, |(name, _)| name)
}

/// Whether the name is the domain or ends in it.
fn is_below(name: &str, domain: &str) -> bool {
    let Some(start) = name.len().checked_sub(domain.len()) else { return false };
    // Names of hosts are ASCII, a configured domain may not be.
    let Some((above, end)) = name.split_at_checked(start) else { return false };
    end.eq_ignore_ascii_case(domain) && (above.is_empty() || above.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn of(version: Version, target: &str, hosts: &[&[u8]]) -> Result<String, HostError> {
        let mut request = Request::builder().version(version).uri(target);
        for value in hosts {
            request = request.header(HOST, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        host(&head).map(str::to_owned)
    }

    #[test]
    fn http_1_says_its_host_once() {
        let http1 = |target: &str, hosts: &[&[u8]]| of(Version::HTTP_11, target, hosts);
        assert_eq!(http1("/a", &[]), Err(HostError::Missing));
        assert_eq!(http1("http://h/a", &[]), Err(HostError::Missing));
        assert_eq!(http1("/a", &[b"h", b"h"]), Err(HostError::Repeated));
        assert_eq!(http1("/a", &[b"H:1"]).as_deref(), Ok("H:1"));
        assert_eq!(http1("http://target:2/a", &[b"h:1"]).as_deref(), Ok("target:2"));
        assert_eq!(of(Version::HTTP_10, "/a", &[]), Err(HostError::Missing));
    }

    #[test]
    fn http_2_says_it_as_authority() {
        let http2 = |target: &str, hosts: &[&[u8]]| of(Version::HTTP_2, target, hosts);
        assert_eq!(http2("http://h:1/a", &[]).as_deref(), Ok("h:1"));
        assert_eq!(http2("http://h:1/a", &[b"H:1"]).as_deref(), Ok("h:1"));
        assert_eq!(http2("http://h:1/a", &[b"other:1"]), Err(HostError::Conflict));
        assert_eq!(http2("http://h:1/a", &[b"h:2"]), Err(HostError::Conflict));
        assert_eq!(http2("/a", &[b"h"]).as_deref(), Ok("h"));
        assert_eq!(http2("/a", &[]), Err(HostError::Missing));
    }

    #[test]
    fn hosts_are_names_or_addresses_with_or_without_a_port() {
        for good in
            ["h", "a-b.c_d.e", "127.0.0.1", "127.0.0.1:10000", "[::1]", "[::1]:80", "h.:65535"]
        {
            assert_eq!(of(Version::HTTP_11, "/", &[good.as_bytes()]).as_deref(), Ok(good));
        }
        let long = "a".repeat(NAME_MAX + 1);
        for bad in [
            "", " ", ":80", "h:", "h:a", "h:65536", "h:-1", "h:+1", "h:1:2", "::1", "[::1", "[h]",
            "[::1]80", "a b", "a/b", "u@h", "h,h", "a\\b", "h?q", "h#f", "<h>", &long,
        ] {
            let found = of(Version::HTTP_11, "/", &[bad.as_bytes()]);
            assert_eq!(found, Err(HostError::Malformed), "{bad:?}");
        }
        assert_eq!(of(Version::HTTP_11, "/", &[b"h\xff"]), Err(HostError::Malformed));
    }

    #[test]
    fn false_names_are_not_known() {
        let known = KnownHosts {
            any: false,
            domains: vec!["store.example".to_owned()],
            names: vec!["azurite".to_owned()],
        };
        for host in [
            "localhost",
            "LOCALHOST:10000",
            "localhost.",
            "acct.blob.localhost",
            "127.0.0.1:10000",
            "[::1]:10000",
            "192.0.2.7",
            "azurite:10000",
            "Azurite",
            "store.example",
            "acct.blob.store.example:443",
        ] {
            assert!(known.know(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "notlocalhost",
            "127.0.0.1.evil.example",
            "azurite.evil.example",
            "x.azurite",
            "notstore.example",
            "2130706433",
            "0x7f.1",
            "é",
        ] {
            assert!(!known.know(host), "{host}");
        }
        assert!(KnownHosts { any: true, ..KnownHosts::default() }.know("evil.example"));
    }
}
