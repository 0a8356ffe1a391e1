//! Which URLs name this same store.

use std::net::IpAddr;
use std::net::SocketAddr;

use http::Uri;
use http::uri::Authority;

use crate::frontend::client::port;
use crate::frontend::service::FrontEndConfig;
use crate::frontend::source::Requester;

/// Where this process listens, by which it knows its own URLs.
#[derive(Clone, Debug, Default)]
pub struct Listening(pub Vec<SocketAddr>);

impl Listening {
    /// Whether a connection to `host` and `port` would end here.
    fn is_at(&self, host: &str, port: u16) -> bool {
        self.0.iter().filter(|own| own.port() == port).any(|own| {
            let own = own.ip().to_canonical();
            let loops_back = own.is_loopback() || own.is_unspecified();
            match host.trim_matches(['[', ']']).parse::<IpAddr>() {
                Ok(ip) => {
                    let ip = ip.to_canonical();
                    ip == own || (ip.is_loopback() && loops_back)
                }
                Err(_) => host.eq_ignore_ascii_case("localhost") && loops_back,
            }
        })
    }
}

/// Whether the URL names this store: under the name the request itself came by, at an address
/// listened on, or under one of the served domains at a port listened on. A wrong yes costs nothing
/// but a refusal: what is here is authorized as any request is.
pub(super) fn is_here(config: &FrontEndConfig, requester: Requester<'_>, url: &Uri) -> bool {
    let Some(authority) = url.authority() else { return false };
    let own = requester.head.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    let own = own.or_else(|| requester.head.uri.authority().map(Authority::as_str));
    if own.is_some_and(|own| own.eq_ignore_ascii_case(authority.as_str())) {
        return true;
    }
    let port = port(url, authority);
    let under = |domain: &String| {
        let rest = authority.host().split_once('.').map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split_once('.')).is_some_and(|(service, name)| {
            service.eq_ignore_ascii_case("blob") && name.eq_ignore_ascii_case(domain)
        })
    };
    let listened = config.listening.0.iter().any(|own| own.port() == port);
    (listened && config.addressing.domains.iter().any(under))
        || config.listening.is_at(authority.host(), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_known() {
        let on = |text: &str| Listening(vec![text.parse().unwrap()]);
        assert!(on("127.0.0.1:10000").is_at("127.0.0.1", 10_000));
        assert!(on("127.0.0.1:10000").is_at("localhost", 10_000));
        assert!(on("127.0.0.1:10000").is_at("[::1]", 10_000));
        assert!(on("0.0.0.0:10000").is_at("127.0.0.1", 10_000));
        assert!(on("192.0.2.7:80").is_at("192.0.2.7", 80));
        assert!(!on("127.0.0.1:10000").is_at("127.0.0.1", 10_001));
        assert!(!on("192.0.2.7:80").is_at("127.0.0.1", 80));
        assert!(!on("127.0.0.1:10000").is_at("192.0.2.7", 10_000));
        assert!(!on("127.0.0.1:10000").is_at("example.org", 10_000));
    }
}
